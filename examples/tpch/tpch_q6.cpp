// TPC-H query 6, exactly: revenue = sum(extendedprice * discount) over the line items of a year
// with a discount in a range and a small quantity. Decimals are integers in hundredths, so the
// answer is an integer in units of 10^-4, and every device gives the same one.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "chainfold/chainfold.hpp"
#include "chainfold/runtime/device/memory.hpp"
#include "columns.hpp"

namespace cf = chainfold;

namespace {

struct Options {
  std::filesystem::path data = ".cache/tpch/sf1";
  std::string device = "auto";
  std::int32_t ship_from = 8766;   // 1994-01-01
  std::int32_t ship_to = 9131;     // 1995-01-01
  std::int64_t discount_from = 5;  // 0.05
  std::int64_t discount_to = 7;    // 0.07
  std::int64_t quantity_below = 2400;
  int repeat = 7;
  std::optional<std::filesystem::path> duckdb;
  bool run_duckdb = false;
  bool explain = false;
  bool json = false;

  [[nodiscard]] bool published_constants() const {
    const Options published;
    return ship_from == published.ship_from && ship_to == published.ship_to &&
           discount_from == published.discount_from && discount_to == published.discount_to &&
           quantity_below == published.quantity_below;
  }
};

constexpr const char* kPublishedAnswer = "123141078.2283";  // at scale factor 1

/// The query. The constants are arguments of the kernel: any five share one compilation.
cf::Computation query(const Options& o) {
  auto ship = cf::input<std::int32_t>("shipdate");
  auto disc = cf::input<std::int64_t>("discount");
  auto qty = cf::input<std::int64_t>("quantity");
  auto price = cf::input<std::int64_t>("extendedprice");
  auto hit = ship >= o.ship_from && ship < o.ship_to && disc >= o.discount_from &&
             disc <= o.discount_to && qty < o.quantity_below;
  return cf::over(cf::whole(), cf::sum(price * disc, cf::where(hit)));
}

/// An integer in units of 10^-4 as a decimal.
std::string decimal(std::int64_t value) {
  const std::string sign = value < 0 ? "-" : "";
  const auto magnitude =
      value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  return fmt::format("{}{}.{:04}", sign, magnitude / 10000, magnitude % 10000);
}

std::string date(std::int32_t days) {
  const std::chrono::year_month_day day{std::chrono::sys_days{std::chrono::days{days}}};
  return fmt::format("{:04}-{:02}-{:02}", static_cast<int>(day.year()),
                     static_cast<unsigned>(day.month()), static_cast<unsigned>(day.day()));
}

double now_ms() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double, std::milli>(Clock::now().time_since_epoch()).count();
}

/// The median wall-clock time in milliseconds of `repeat` calls, after one that is not counted.
template <class F>
double median_ms(int repeat, F&& call) {
  call();
  std::vector<double> times;
  for (int i = 0; i < repeat; ++i) {
    const double start = now_ms();
    call();
    times.push_back(now_ms() - start);
  }
  std::nth_element(times.begin(), times.begin() + repeat / 2, times.end());
  return times[static_cast<std::size_t>(repeat / 2)];
}

/// The columns in a device's memory, and the answer computed there.
class DeviceQuery {
 public:
  DeviceQuery(const cf::Kernel& kernel, const Columns& columns, int device)
      : kernel_(kernel), context_(cf::runtime::Context::of(device)), stream_(context_) {
    const void* sources[] = {columns.ship.data(), columns.discount.data(), columns.quantity.data(),
                             columns.price.data()};
    for (int i = 0; i < 4; ++i) {
      const std::size_t bytes = static_cast<std::size_t>(columns.rows) * (i == 0 ? 4 : 8);
      buffers_.emplace_back(context_, bytes);
      if (bytes > 0) {
        cf::runtime::copy_to_device(context_, buffers_[static_cast<std::size_t>(i)].pointer(),
                                    sources[i], bytes, stream_.handle());
      }
    }
    answer_ = cf::runtime::DeviceBuffer(context_, sizeof(std::int64_t));
    args_ = {.elements = columns.rows,
             .inputs = {{"shipdate", static_cast<const std::int32_t*>(buffers_[0].data())},
                        {"discount", static_cast<const std::int64_t*>(buffers_[1].data())},
                        {"quantity", static_cast<const std::int64_t*>(buffers_[2].data())},
                        {"extendedprice", static_cast<const std::int64_t*>(buffers_[3].data())}},
             .outputs = {{static_cast<std::int64_t*>(answer_.data()), 1}},
             .stream = stream_.handle()};
    const std::int64_t scratch = kernel.scratch_bytes(args_);
    scratch_ = cf::runtime::DeviceBuffer(context_, static_cast<std::size_t>(scratch));
    args_.scratch = {scratch_.data(), scratch};
    stream_.synchronize();
  }

  std::int64_t run() {
    std::int64_t result = 0;
    kernel_.launch(args_);
    cf::runtime::copy_to_host(context_, &result, answer_.pointer(), sizeof(result),
                              stream_.handle());
    stream_.synchronize();
    return result;
  }

 private:
  const cf::Kernel& kernel_;
  const cf::runtime::Context& context_;
  cf::runtime::Stream stream_;
  std::vector<cf::runtime::DeviceBuffer> buffers_;
  cf::runtime::DeviceBuffer answer_, scratch_;
  cf::LaunchArgs args_;
};

/// What duckdb_q6.py prints, from a file or from running it.
nlohmann::json duckdb_result(const Options& o) {
  std::string text;
  if (o.duckdb) {
    std::ifstream stream(*o.duckdb);
    if (!stream) throw std::runtime_error(o.duckdb->string() + " could not be opened");
    text.assign(std::istreambuf_iterator<char>(stream), {});
  } else {
    const std::filesystem::path source = CHAINFOLD_SOURCE_DIR;
    const std::filesystem::path venv = source / ".cache/venv/bin/python";
    const std::string command = fmt::format(
        "'{}' '{}' '{}' --ship-from={} --ship-to={} --discount-from={} --discount-to={} "
        "--quantity-below={} --repeats={}",
        std::filesystem::exists(venv) ? venv.string() : "python3",
        (source / "examples/tpch/duckdb_q6.py").string(), o.data.string(), o.ship_from, o.ship_to,
        o.discount_from, o.discount_to, o.quantity_below, o.repeat);
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(::popen(command.c_str(), "r"),
                                                               &::pclose);
    if (!pipe) throw std::runtime_error("could not run " + command);
    char buffer[4096];
    while (std::fgets(buffer, sizeof(buffer), pipe.get()) != nullptr) text += buffer;
  }
  try {
    nlohmann::json result = nlohmann::json::parse(text);
    static_cast<void>(result.at("answer").get<std::string>());
    static_cast<void>(result.at("ms").get<double>());
    return result;
  } catch (const nlohmann::json::exception& error) {
    throw std::runtime_error(fmt::format(
        "DuckDB's result is not what duckdb_q6.py prints ({}); run scripts/setup.sh, then "
        "examples/tpch/duckdb_q6.py",
        error.what()));
  }
}

std::string rate(std::int64_t rows, std::int64_t bytes, double ms) {
  return fmt::format("{:9.3f} ms  {:8.1f} million rows/s  {:7.2f} GB/s", ms,
                     static_cast<double>(rows) / ms * 1e-3, static_cast<double>(bytes) / ms * 1e-6);
}

cf::Kernel compile(const cf::Computation& q6, const Options& o) {
  cf::Options options;
  if (o.device != "auto") options.target = cf::target(o.device);
  return cf::compile(q6, options);
}

int run(const Options& o) {
  const Columns columns(o.data);
  const cf::Computation q6 = query(o);
  const cf::Kernel kernel = compile(q6, o);
  const bool gpu = kernel.target().backend == cf::codegen::Backend::cuda;

  const cf::Bindings bindings = {{"shipdate", columns.ship},
                                 {"discount", columns.discount},
                                 {"quantity", columns.quantity},
                                 {"extendedprice", columns.price}};
  std::int64_t answer = 0;
  const double host_ms =
      median_ms(o.repeat, [&] { answer = std::get<0>(kernel.run<std::int64_t>(bindings))[0]; });
  std::optional<double> device_ms;
  bool devices_agree = true;
  if (gpu) {
    const std::string& name = kernel.target().name;
    DeviceQuery resident(kernel, columns, name.size() > 4 ? std::atoi(name.c_str() + 4) : 0);
    std::int64_t there = 0;
    device_ms = median_ms(o.repeat, [&] { there = resident.run(); });
    devices_agree = there == answer;
  }

  if (o.json) {
    const nlohmann::json result = {
        {"answer", decimal(answer)},
        {"rows", columns.rows},
        {"device", kernel.device_name()},
        {"ms", host_ms},
        {"device_resident_ms", device_ms ? nlohmann::json(*device_ms) : nlohmann::json()},
        {"plan", kernel.plan_summary()}};
    fmt::print("{}\n", result.dump());
    return devices_agree ? 0 : 1;
  }

  if (o.explain) fmt::print("{}\n", kernel.explain());
  fmt::print("TPC-H query 6: {} rows, {:.1f} MB, scale factor {:g}\n", columns.rows,
             static_cast<double>(columns.bytes()) * 1e-6, columns.scale_factor);
  fmt::print("  shipped from {} until before {}, discount {:.2f} to {:.2f}, quantity below {:g}\n",
             date(o.ship_from), date(o.ship_to), static_cast<double>(o.discount_from) / 100,
             static_cast<double>(o.discount_to) / 100, static_cast<double>(o.quantity_below) / 100);
  fmt::print("device   {}\n", kernel.device_name());
  fmt::print("compiled {:.1f} ms\n", kernel.stats().compile_ms);
  fmt::print("{}\n", kernel.plan_summary());
  fmt::print("answer   {}\n", decimal(answer));
  fmt::print("time     {}{}\n", rate(columns.rows, columns.bytes(), host_ms),
             gpu ? "  from host memory, copies included" : "");
  if (device_ms) {
    fmt::print("         {}  from device memory\n",
               rate(columns.rows, columns.bytes(), *device_ms));
  }
  bool right = devices_agree;
  if (!devices_agree) fmt::print("WRONG    the answer from device memory differs\n");
  if (columns.scale_factor == 1 && o.published_constants()) {
    const bool same = decimal(answer) == kPublishedAnswer;
    right = right && same;
    fmt::print("{} the published answer is {}\n", same ? "equal   " : "WRONG   ", kPublishedAnswer);
  }
  if (o.duckdb || o.run_duckdb) {
    const nlohmann::json duckdb = duckdb_result(o);
    const double ms = duckdb["ms"].get<double>();
    fmt::print("DuckDB   {}\n         {}  {} threads, version {}\n",
               duckdb["answer"].get<std::string>(), rate(columns.rows, columns.bytes(), ms),
               duckdb.value("threads", 0), duckdb.value("version", "unknown"));
    const bool same = duckdb["answer"] == decimal(answer);
    right = right && same;
    fmt::print("{}\n", same ? "equal    both answers"
                            : "WRONG    the answers differ (or DuckDB ran on other rows or with "
                              "other constants)");
  }
  return right ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  CLI::App app("TPC-H query 6 over the columns that examples/tpch/make_data.py writes.");
  app.add_option("data,--data", o.data, "folder with manifest.json and the column files")
      ->capture_default_str();
  app.add_option("--device", o.device, "auto (the GPU if there is one), gpu, gpu:N or cpu")
      ->capture_default_str();
  app.add_option("--ship-from", o.ship_from, "first day, in days since 1970-01-01")
      ->capture_default_str();
  app.add_option("--ship-to", o.ship_to, "the day after the last one")->capture_default_str();
  app.add_option("--discount-from", o.discount_from, "hundredths, included")->capture_default_str();
  app.add_option("--discount-to", o.discount_to, "hundredths, included")->capture_default_str();
  app.add_option("--quantity-below", o.quantity_below, "hundredths, excluded")
      ->capture_default_str();
  app.add_option("--repeat", o.repeat, "timed runs, after one untimed")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  auto* file =
      app.add_option("--duckdb", o.duckdb, "compare with what duckdb_q6.py printed into this file");
  app.add_flag("--run-duckdb", o.run_duckdb, "run duckdb_q6.py now and compare with it")
      ->excludes(file);
  app.add_flag("--explain", o.explain, "also print expression, graph, plan and kernel source");
  app.add_flag("--json", o.json, "print one JSON object and nothing else");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(o);
  } catch (const std::exception& error) {
    fmt::print(stderr, "tpch_q6: error: {}\n", error.what());
    return 1;
  }
}
