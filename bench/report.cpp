#include "chainfold/bench/report.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace chainfold::bench {
namespace {

using Json = nlohmann::ordered_json;

Json optional(const std::optional<double>& value) { return value ? Json(*value) : Json(); }

/// The first line that a command prints, empty if it fails.
std::string first_line(const char* command) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(::popen(command, "r"), &::pclose);
  char line[256] = "";
  if (!pipe || std::fgets(line, sizeof(line), pipe.get()) == nullptr) return {};
  std::string text = line;
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}

Json json_of(const Ceilings& c) {
  return {{"read_gbps", c.read_gbps}, {"write_gbps", c.write_gbps}, {"copy_gbps", c.copy_gbps}};
}

}  // namespace

std::string size_text(std::int64_t n) {
  if (n > 0 && (n & (n - 1)) == 0 && n >= 1 << 16) {
    int power = 0;
    while (n >> power > 1) ++power;
    return fmt::format("2^{}", power);
  }
  return std::to_string(n);
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

Ceilings::Ceilings(std::int64_t bytes, double read_ms, double copy_ms) {
  const auto amount = static_cast<double>(bytes) * 1e-6;
  read_gbps = amount / read_ms;
  copy_gbps = 2 * amount / copy_ms;
  // A cache or noise can make a copy look as fast as its reads alone; then there is no rate of
  // writes.
  write_gbps = copy_ms > read_ms ? amount / (copy_ms - read_ms) : copy_gbps;
}

Ceilings between(const Ceilings& a, const Ceilings& b) {
  Ceilings c;
  c.read_gbps = (a.read_gbps + b.read_gbps) / 2;
  c.write_gbps = (a.write_gbps + b.write_gbps) / 2;
  c.copy_gbps = (a.copy_gbps + b.copy_gbps) / 2;
  return c;
}

Row make_row(const Case& test, const std::string& impl, double ms, std::size_t repeats,
             const Ceilings& ceilings) {
  Row row = make_plain_row(test.op_name(), impl, ms, repeats);
  row.dtype = test.op == Op::q6 ? "i64" : chainfold::name_of(test.in);
  row.out_dtype = chainfold::name_of(test.out);
  row.n = test.elements;
  row.segment = test.segment;
  row.cached = test.cached;
  row.offset = test.offset;
  row.gbps = static_cast<double>(test.bytes_read() + test.bytes_written()) / ms * 1e-6;
  row.ceiling_ms = ceilings.least_ms(test.bytes_read(), test.bytes_written());
  row.ratio = *row.ceiling_ms / ms;
  return row;
}

Row make_plain_row(const std::string& op, const std::string& impl, double ms, std::size_t repeats) {
  Row row;
  row.op = op;
  row.impl = impl;
  row.ms = ms;
  row.repeats = repeats;
  return row;
}

void set_plan(Row& row, const Kernel& kernel) {
  row.plan.clear();
  bool space = false;
  for (const char c : kernel.plan_summary()) {  // its lines and indentation become single blanks
    const bool blank = c == '\n' || c == ' ';
    if (!blank) {
      if (space && !row.plan.empty()) row.plan += ' ';
      row.plan += c;
    }
    space = blank;
  }
  const PlanFacts facts = kernel.plan_facts();
  row.plan_kind = !facts.tensor_cores ? "simt" : facts.lanes ? "mma+simt" : "mma";
}

void describe_build(Report& report) {
  std::string commit;
#ifdef CHAINFOLD_COMMIT
  commit = CHAINFOLD_COMMIT;
#endif
  if (const char* given = std::getenv("CHAINFOLD_COMMIT"); given != nullptr && *given != '\0') {
    commit = given;
  }
  if (commit.empty()) {
    commit = first_line("git rev-parse HEAD 2>/dev/null");
    if (!commit.empty() && !first_line("git status --porcelain 2>/dev/null").empty()) {
      commit += "-dirty";
    }
  }
  constexpr std::string_view kDirty = "-dirty";
  const bool dirty = commit.ends_with(kDirty);
  if (dirty) commit.resize(commit.size() - kDirty.size());
  if (!commit.empty()) report.clean = !dirty;
  report.commit = commit.empty() ? kUnknownCommit : commit;
  report.date = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

nlohmann::ordered_json json_of_row(const std::string& suite, const Row& row) {
  const bool measured = row.missing.empty();
  Json json = {{"suite", suite},
               {"op", row.op},
               {"dtype", row.dtype},
               {"out_dtype", row.out_dtype},
               {"n", row.n},
               {"segment", row.segment > 0 ? Json(row.segment)
                           : row.n > 0     ? Json("whole")
                                           : Json()},
               {"impl", row.impl},
               {"plan", row.plan},
               {"plan_kind", row.plan_kind},
               {"ms", measured ? Json(row.ms) : Json()},
               {"repeats", row.repeats},
               {"gbps", optional(row.gbps)},
               {"ceiling_ms", optional(row.ceiling_ms)},
               {"ratio", optional(row.ratio)},
               {"max_err_u", optional(row.max_err_u)},
               {"pj_per_element", optional(row.pj_per_element)},
               {"ceilings_pj_per_element", optional(row.ceilings_pj_per_element)}};
  if (row.err_percent) json["err_percent"] = *row.err_percent;
  if (row.overflow) json["overflow"] = true;
  if (row.cached) json["cached"] = true;
  if (row.offset > 0) json["offset"] = row.offset;
  if (!row.experiment.empty()) {
    json["experiment"] = row.experiment;
    json["data"] = row.data;
  }
  if (row.is_void) json["void"] = true;
  if (!measured) json["missing"] = row.missing;
  return json;
}

nlohmann::ordered_json json_of_head(const Report& report) {
  Json head = {{"suite", report.suite},
               {"target", report.target},
               {"device", report.device},
               {"driver", report.driver},
               {"cuda", report.cuda},
               {"commit", report.commit},
               {"clean", report.clean ? Json(*report.clean) : Json()},
               {"date", report.date},
               {"read_gbps", report.before.read_gbps},
               {"write_gbps", report.before.write_gbps},
               {"copy_gbps", report.before.copy_gbps},
               {"after", json_of(report.after)}};
  if (!report.peers.empty()) head["peers"] = report.peers;
  if (!report.strategies.empty()) head["strategies"] = report.strategies;
  return head;
}

void check_writable(const std::filesystem::path& file, const std::string& suffix) {
  std::filesystem::path tried = file;
  tried += suffix;
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored))
    throw std::runtime_error(fmt::format("{} is a folder; name a file in it", file.string()));
  const bool there = std::filesystem::exists(tried, ignored);
  errno = 0;
  const bool opened = std::ofstream(tried, std::ios::app).is_open();
  const int why = errno;
  if (!opened) {
    throw std::runtime_error(
        fmt::format("{} cannot be written: {}; name a file in a folder that exists and may be "
                    "written to",
                    file.string(), std::strerror(why)));
  }
  if (!there) std::filesystem::remove(tried, ignored);
}

void write_json(const Report& report, const std::filesystem::path& file) {
  Json rows = Json::array();
  for (const Row& row : report.rows) rows.push_back(json_of_row(report.suite, row));
  std::ofstream stream(file);
  stream << Json{{"head", json_of_head(report)}, {"rows", rows}}.dump(1) << '\n';
  stream.flush();
  if (!stream) throw std::runtime_error(file.string() + " could not be written");
}

std::string heading(const Report& report) {
  return fmt::format(
      "{}, driver {}, CUDA {}, commit {}{}, {}\n"
      "ceilings in GB/s, before and after: read {:.1f} {:.1f}, copy {:.1f} {:.1f} (so write {:.1f} "
      "{:.1f})",
      report.device, report.driver, report.cuda, report.commit.substr(0, 12),
      !report.clean   ? ""
      : *report.clean ? " (clean)"
                      : " (with changes)",
      report.date, report.before.read_gbps, report.after.read_gbps, report.before.copy_gbps,
      report.after.copy_gbps, report.before.write_gbps, report.after.write_gbps);
}

std::string table(const Report& report) {
  std::string text = heading(report) + "\n\n";
  text += fmt::format("{:<14} {:<9} {:>10} {:>8} {:<15} {:<8} {:>10} {:>9} {:>6} {:>9}\n", "op",
                      "type", "n", "S", "impl", "plan", "ms", "GB/s", "ratio", "err (u)");
  for (const Row& row : report.rows) {
    const auto number = [](const std::optional<double>& value, const char* format) {
      return value ? fmt::format(fmt::runtime(format), *value) : std::string("-");
    };
    const std::string type = row.out_dtype.empty() ? row.dtype : row.dtype + "->" + row.out_dtype;
    text += fmt::format("{:<14} {:<9} {:>10} {:>8} {:<15} {:<8} {:>10.4f} {:>9} {:>6} {:>9}\n",
                        row.op, type, row.n > 0 ? size_text(row.n) : "-",
                        row.segment > 0 ? size_text(row.segment) : (row.n > 0 ? "whole" : "-"),
                        row.impl, row.plan_kind, row.ms, number(row.gbps, "{:.1f}"),
                        number(row.ratio, "{:.3f}"), number(row.max_err_u, "{:.3g}"));
  }
  return text;
}

}  // namespace chainfold::bench
