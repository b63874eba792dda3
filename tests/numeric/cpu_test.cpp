// Kernels on the CPU through the public interface, held against the reference: all test programs,
// and for the plain folds every segment size and odd counts.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <thread>

#include <fmt/ranges.h>

#include "chainfold/chainfold.hpp"
#include "chainfold/codegen/choose/default.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/lambda.hpp"
#include "chainfold/codegen/legalize.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/plan/print.hpp"
#include "chainfold/tests/support/executors.hpp"
#include "chainfold/tests/support/on_cpu.hpp"
#include "chainfold/tests/support/programs.hpp"
#include "chainfold/tests/support/reference.hpp"

namespace chainfold::test {
namespace {

using codegen::Op;

constexpr std::int64_t kSizes[] = {1,  2,   7,   8,   16,  24,   31,   32,   33,
                                   64, 100, 255, 256, 257, 1000, 4096, 65537};

/// One run; `segment` 0: the whole.
struct CpuCase {
  std::int64_t segment = 0, elements = 0;
  Fill fill = Fill::uniform;
  std::uint64_t seed = 1;
  bool tail = false, sized_at_launch = false;
  int offset = 0;  ///< bytes behind an aligned address
  bool launch = false;
  bool columns = false;                 ///< `segment` is their number
  std::vector<std::int64_t> gaps = {};  ///< elements between rows, for the inputs in turn
};

std::string words(const CpuCase& c) {
  return fmt::format(
      "{} {}{}{}{}, {} elements of {}{}{}", c.columns ? "columns" : "segment", c.segment,
      c.gaps.empty() ? "" : fmt::format(" with gaps of {}", fmt::join(c.gaps, " ")),
      c.tail ? " with a tail" : "", c.sized_at_launch ? " given at launch" : "", c.elements,
      name_of(c.fill), c.offset ? fmt::format(", {} bytes off", c.offset) : "",
      c.launch ? ", launched" : "");
}

dsl::Partition partition_of(const CpuCase& c) {
  const Tail tail = c.tail ? Tail::partial : Tail::error;
  if (c.segment == 0) return whole();
  if (c.columns) return c.sized_at_launch ? columns(param<std::int64_t>("S")) : columns(c.segment);
  if (c.sized_at_launch) return segments(param<std::int64_t>("S"), tail);
  return segments(c.segment, tail);
}

class CpuNumeric : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_cpu(); !why.empty()) GTEST_SKIP() << why;
  }

  static const Target& cpu() {
    static const Target kCpu = target("cpu");
    return kCpu;
  }

  static codegen::Plan plan(const codegen::Graph& graph, std::int64_t segment) {
    const codegen::Graph made = codegen::legalize(graph, cpu());
    return as_written(codegen::choose_plan(made, cpu(), {.segment = segment}), made, graph);
  }

  /// Runs and compares; `kernel` may come from an earlier case of the same computation.
  static void check(const TestProgram& tested, const Computation& computation, const Kernel& kernel,
                    const CpuCase& c) {
    SCOPED_TRACE(fmt::format("{}: {}", tested.name, words(c)));
    const codegen::Graph& graph = computation.graph();
    std::vector<Column> inputs;
    for (std::size_t i = 0; i < graph.inputs.size(); ++i) {
      const DType type = graph.inputs[i].type;
      const int offset = c.offset / size_of(type) * size_of(type);
      inputs.push_back(make_column(type, c.elements, c.fill, c.seed + i, offset));
    }
    const std::vector<Bits> params = param_bits(tested, graph, c.segment);
    Bindings bindings;
    std::vector<Column> spread_out;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const Column* column = &inputs[i];
      std::int64_t stride = 0;
      if (!c.gaps.empty() && !graph.inputs[i].is_packed()) {
        const DType type = column->type();
        stride = c.segment + c.gaps[i % c.gaps.size()];
        spread_out.push_back(
            spread(*column, c.segment, stride, c.offset / size_of(type) * size_of(type)));
        column = &spread_out.back();
      }
      bindings.push_back(input_binding(graph.inputs[i], *column, stride));
    }
    for (std::size_t i = 0; i < graph.params.size(); ++i) {
      bindings.push_back(scalar_binding(graph.params[i], params[i]));
    }
    const std::int64_t count = c.segment == 0 ? 1
                               : c.columns    ? c.segment
                                              : (c.elements + c.segment - 1) / c.segment;
    ASSERT_EQ(kernel.output_count(bindings), count);
    std::vector<Column> actual;
    Outputs outputs;
    for (codegen::NodeId id : graph.outputs) {
      actual.emplace_back(graph.node(id).type, count);
      actual.back().fill(std::byte{0x5A});
    }
    for (Column& column : actual)
      outputs.push_back(OutputBinding(column.data(), column.type(), count));
    if (c.launch) {
      LaunchArgs args{.elements = c.elements, .inputs = bindings, .outputs = outputs};
      const Column scratch(DType::u8,
                           kernel.scratch_bytes({.elements = c.elements, .inputs = bindings}));
      args.scratch = {const_cast<std::byte*>(scratch.data()), scratch.count()};
      kernel.launch(args);
      EXPECT_TRUE(scratch.sentinel_intact()) << "something was written behind the scratch memory";
    } else {
      kernel.run_into(bindings, outputs);
    }
    ReferenceRequest request{
        .segment = c.segment, .params = params, .plan = plan(graph, c.segment)};
    if (c.tail) request.tail_plan = plan(graph, 0);
    if (tested.transcendental) request.transcendental_ulp = kTranscendentalUlps;
    const Verdict verdict = judge(reference(graph, inputs, c.elements, request), actual);
    EXPECT_EQ(verdict.problems, "");
    if (c.fill != Fill::extremes && c.fill != Fill::nonfinite) {
      EXPECT_EQ(verdict.unchecked, 0);
    }
  }

  static void check(const TestProgram& tested, const CpuCase& c) {
    const Computation computation = tested.over(partition_of(c));
    check(tested, computation, compile(computation, {.target = cpu()}), c);
  }
};

class CpuPrograms : public CpuNumeric, public testing::WithParamInterface<std::size_t> {};

TEST_P(CpuPrograms, AgreeWithTheReference) {
  const TestProgram& tested = programs()[GetParam()];
  const std::size_t turn = GetParam();
  for (std::size_t i = 0; i < 2; ++i) {
    const std::int64_t segment = kSizes[(turn * 3 + i * 5) % 16];
    check(tested, {.segment = segment,
                   .elements = segment * (segment < 300 ? 65 : 3),
                   .fill = tested.fills[(turn + i) % tested.fills.size()],
                   .seed = turn + i});
  }
  const CpuCase long_one{
      .elements = kSizes[(turn * 7) % std::size(kSizes)], .fill = tested.fills[0], .seed = turn};
  check(tested, long_one);
}

INSTANTIATE_TEST_SUITE_P(All, CpuPrograms, testing::Range(std::size_t{0}, programs().size()),
                         [](const auto& info) { return programs()[info.param].name; });

class CpuSizes : public CpuNumeric,
                 public testing::WithParamInterface<std::tuple<const char*, std::int64_t>> {};

TEST_P(CpuSizes, EverySegmentSize) {
  const auto [name, segment] = GetParam();
  const TestProgram& tested = program(std::string("sum_") + name);
  const CpuCase first{.segment = segment};
  const Computation computation = tested.over(partition_of(first));
  const Kernel kernel = compile(computation, {.target = cpu()});
  std::size_t turn = 0;
  for (std::int64_t n : kSizes) {
    // n elements where they are whole segments, else n segments of moderate size.
    const std::int64_t elements =
        n % segment == 0 ? n : segment * std::clamp<std::int64_t>(20000 / segment, 1, n);
    CpuCase c{
        .segment = segment, .elements = elements, .fill = tested.fills[turn % tested.fills.size()]};
    c.seed = ++turn;
    c.offset = turn % 3 == 0 ? 8 : 0;
    c.launch = turn % 4 == 0;
    check(tested, computation, kernel, c);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, CpuSizes,
                         testing::Combine(testing::Values("f16", "bf16", "f32", "f64", "i8", "u8",
                                                          "i16", "u16", "i32", "u32", "i64", "u64"),
                                          testing::ValuesIn(kSizes)),
                         [](const auto& info) {
                           return fmt::format("{}_S{}", std::get<0>(info.param),
                                              std::get<1>(info.param));
                         });

TEST_F(CpuNumeric, WholeOfEveryLength) {
  for (const char* name : {"sum_f16", "basics_f32", "sum_i64", "variance_f64", "q6"}) {
    const TestProgram& tested = program(name);
    const Computation computation = tested.over(whole());
    const Kernel kernel = compile(computation, {.target = cpu()});
    for (std::int64_t n : kSizes)
      check(tested, computation, kernel, {.elements = n, .launch = n % 2 == 0});
  }
}

TEST_F(CpuNumeric, TailIsAShorterSegment) {
  for (const char* name : {"sum_f32", "basics_i16", "variance_f32", "frames"}) {
    const TestProgram& tested = program(name);
    for (std::int64_t segment : {1, 7, 32, 100, 4096}) {
      const CpuCase any{.segment = segment, .tail = true};
      const Computation computation = tested.over(partition_of(any));
      const Kernel kernel = compile(computation, {.target = cpu()});
      for (std::int64_t n :
           {segment - 1, segment, segment + 1, 5 * segment + segment / 2, std::int64_t{0}}) {
        for (bool launch : {false, true}) {
          CpuCase c = any;
          c.elements = n;
          c.launch = launch;
          check(tested, computation, kernel, c);
        }
      }
    }
  }
}

TEST_F(CpuNumeric, SegmentSizeGivenAtLaunch) {
  const TestProgram& tested = program("basics_f16");
  const Computation computation =
      tested.over(partition_of({.segment = 1, .sized_at_launch = true}));
  const Kernel kernel = compile(computation, {.target = cpu()});
  for (std::int64_t segment : {1, 8, 33, 1000, 8}) {
    for (bool launch : {false, true}) {
      check(tested, computation, kernel,
            {.segment = segment,
             .elements = 12 * segment,
             .sized_at_launch = true,
             .launch = launch});
    }
  }
  EXPECT_EQ(kernel.stats().compiled + kernel.stats().reused, 4) << "one kernel a segment size";
}

constexpr std::int64_t kColumnCounts[] = {1, 3, 31, 32, 33, 129, 1000, 1024, 4099};
static_assert(std::size(kColumnCounts) % 2 == 1, "so that programs in turn take the others");

TEST_F(CpuNumeric, ColumnsOfEveryNumber) {
  bool taken = false;
  for (const char* name :
       {"sum_f16", "sum_bf16", "sum_f32", "sum_i8", "sum_f64", "arg_folds_f32", "basics_f16"}) {
    const TestProgram& tested = program(name);
    std::size_t turn = 0;
    for (const std::int64_t count : kColumnCounts) {
      taken = !taken;  // every other number, for the next program the others: compiling is slow
      if (!taken) continue;
      const Computation computation = tested.over(columns(count));
      const Kernel kernel = compile(computation, {.target = cpu()});
      for (const std::int64_t rows : {1, 7, 400}) {
        if (count * rows > 440'000 && ++turn % 2 == 0) continue;
        CpuCase c{.segment = count, .elements = count * rows, .columns = true};
        c.fill = tested.fills[turn % tested.fills.size()];
        c.seed = ++turn;
        c.launch = turn % 2 == 0;
        c.offset = turn % 3 == 0 ? 8 : 0;
        if (turn % 3 == 1) c.gaps = {static_cast<std::int64_t>(turn % 5), 16};
        check(tested, computation, kernel, c);
      }
    }
  }
}

/// Too large for a core's cache: blocks walk along rows.
TEST_F(CpuNumeric, ColumnsOfLargeMatrices) {
  std::size_t turn = 0;
  int four_rows = 0;
  for (const char* name : {"sum_f16", "sum_f32", "arg_folds_f32", "sum_f64"}) {
    const TestProgram& tested = program(name);
    for (const std::int64_t count : {129, 300, 1000, 4099, 10'007, 32'768}) {
      const Computation computation = tested.over(columns(count));
      const int size = size_of(computation.graph().inputs[0].type);
      Target target = cpu();  // rows of a batch side by side, or far apart
      target.interleaved_streams = 1 + static_cast<int>((turn + turn / 6) % 2);
      const Kernel kernel = compile(computation, {.target = target});
      CpuCase c{.segment = count, .columns = true};
      c.elements = ((std::int64_t{5} << 20) / size / count + 3) * count;
      c.fill = tested.fills[turn % tested.fills.size()];
      c.seed = ++turn;
      c.launch = turn % 2 == 0;
      check(tested, computation, kernel, c);
      EXPECT_NE(kernel.plan().find(" strip="), std::string::npos) << kernel.plan();
      four_rows += static_cast<int>(kernel.plan().find(" depth=4 ") != std::string::npos);
    }
  }
  EXPECT_GE(four_rows, 1);
}

/// What lies between rows is no memory: none of it is read.
TEST_F(CpuNumeric, ColumnsOfRowsThatEndWithAPage) {
  const auto page = static_cast<std::int64_t>(sysconf(_SC_PAGESIZE));
  constexpr std::int64_t kRows = 300;
  const std::int64_t stride = 2 * page / 4, bytes = 2 * page * kRows;
  for (const std::int64_t columns : {33, 37, 70, 100}) {
    auto* const memory = static_cast<std::byte*>(
        mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    ASSERT_NE(static_cast<void*>(memory), MAP_FAILED);
    for (std::int64_t r = 0; r < kRows; ++r) {
      std::byte* const of_row = memory + 2 * page * r;
      ASSERT_EQ(mprotect(of_row, page, PROT_READ | PROT_WRITE), 0);
      auto* const row = reinterpret_cast<float*>(of_row + page) - columns;
      for (std::int64_t c = 0; c < columns; ++c) row[c] = static_cast<float>(r % 7 + c);
    }
    const Computation computation = over(chainfold::columns(columns), sum(input<float>("x")));
    for (const int streams : {1, 2}) {
      Target target = cpu();
      target.interleaved_streams = streams;
      const Kernel kernel = compile(computation, {.target = target});
      std::vector<float> sums(static_cast<std::size_t>(columns), -1);
      const auto* const first = reinterpret_cast<const float*>(memory + page) - columns;
      kernel.run_into({Binding("x", first, DType::f32, (kRows - 1) * stride + columns, stride)},
                      {OutputBinding(sums.data(), DType::f32, columns)});
      float rows = 0;
      for (std::int64_t r = 0; r < kRows; ++r) rows += static_cast<float>(r % 7);
      for (std::int64_t c = 0; c < columns; ++c)
        ASSERT_EQ(sums[static_cast<std::size_t>(c)], rows + static_cast<float>(kRows * c)) << c;
    }
    munmap(memory, bytes);
  }
}

/// Threads may read long ranges in two places in turn: tiles of rows, loads of parts and of long
/// rows. Nothing is a multiple of anything.
TEST_F(CpuNumeric, LongRangesAreReadInSeveralPlaces) {
  Target apart = cpu();
  apart.interleaved_streams = 2;
  std::uint64_t seed = 0;
  const auto check_places = [&](const char* name, std::int64_t segment, std::int64_t elements,
                                const std::string& plan) {
    const TestProgram& tested = program(name);
    CpuCase c{.segment = segment, .elements = elements, .seed = ++seed};
    c.offset = seed % 2 == 0 ? 8 : 0;
    Options options{.target = apart};
    options.plan = plan;
    const Computation computation = tested.over(partition_of(c));
    const Kernel kernel = compile(computation, options);
    check(tested, computation, kernel, c);
    EXPECT_NE(kernel.explain().find("places in turn"), std::string::npos) << words(c);
  };
  // A thread's ranges are a sixteenth of its share, and 256 KiB for that at least; few blocks may
  // be one thread's, and one range.
  const std::int64_t threads = std::min(apart.processors, 8);
  check_places("sum_f64", 1001, (threads * (9 << 16) / 1001 + 3) * 1001, "");
  check_places("arg_folds_f32", 250, 250 * 331, "");
  constexpr std::int64_t kLong = 131'073;
  check_places("sum_f16", kLong, kLong, "parts warps=1 depth=64 parts=1 bytes=0 simt");
  check_places("sum_i8", kLong, 2 * kLong, "rows warps=1 depth=32 rows=1 bytes=4 simt");
  check_places("arg_folds_f32", kLong, kLong, "rows warps=1 depth=32 rows=1 bytes=0 simt");
  check_places("variance_f32", kLong, kLong, "parts warps=1 depth=32 parts=1 bytes=0 simt");
}

// Results of so many short segments pass the caches by where they begin with a line; the last tile
// is not whole, and nothing behind it is touched.
TEST_F(CpuNumeric, ManyResultsMayPassTheCachesBy) {
  constexpr std::int64_t kSegment = 8, kCount = (std::int64_t{1} << 23) + 37;
  constexpr std::size_t kLine = 64 / sizeof(std::int32_t);
  constexpr std::int32_t kPoison = -77;
  std::vector<std::int8_t> x(kCount * kSegment);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<std::int8_t>(i * 2'654'435'761U >> 24U);
  Options options;
  options.target = target("cpu");
  options.tuning = Tuning::off;
  const Kernel kernel =
      compile(over(segments(kSegment), cast<std::int32_t>(sum(input<std::int8_t>("x")))), options);
  for (const std::size_t skip : {0, 3}) {
    std::vector<std::int32_t> out(kCount + 3 * kLine, kPoison);
    std::size_t first = skip;
    while (reinterpret_cast<std::uintptr_t>(out.data() + first - skip) % 64 != 0) ++first;
    kernel.run_into({{"x", x}}, {{out.data() + first, kCount}});
    std::size_t wrong = 0;
    for (std::size_t s = 0; s < kCount; ++s) {
      std::int32_t sum = 0;
      for (std::size_t i = 0; i < kSegment; ++i) sum += x[s * kSegment + i];
      wrong += out[first + s] != sum;
    }
    EXPECT_EQ(wrong, 0U) << "first result at element " << skip << " of a line";
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (i < first || i >= first + kCount) {
        EXPECT_EQ(out[i], kPoison) << i;
      }
    }
  }
}

/// What a launch is remembered by may be wrong of the next one.
TEST_F(CpuNumeric, LaunchesOfAsManyBlocksThatDoMoreOrLess) {
  const TestProgram& tested = program("sum_f32");
  for (const std::int64_t count : {200, 1000}) {
    const Computation computation = tested.over(columns(count));
    const Kernel kernel = compile(computation, {.target = cpu()});
    std::uint64_t seed = 0;
    for (const std::int64_t rows : {8, 8, 1000, 1000, 8, 1000, 1, 8})
      check(tested, computation, kernel,
            {.segment = count, .elements = count * rows, .seed = ++seed, .columns = true});
  }
}

TEST_F(CpuNumeric, ColumnsOfEveryProgram) {
  std::size_t turn = 0;
  for (const TestProgram& tested : programs()) {
    const std::int64_t count = kColumnCounts[++turn % 7];
    CpuCase c{.segment = count, .elements = count * 301, .seed = turn, .columns = true};
    c.fill = tested.fills[turn % tested.fills.size()];
    c.launch = turn % 2 == 0;
    if (turn % 3 == 0) c.gaps = {5, 0};
    check(tested, c);
  }
}

TEST_F(CpuNumeric, ColumnsGivenAtLaunchAndWithoutRows) {
  const TestProgram& tested = program("basics_f16");
  const Computation computation =
      tested.over(partition_of({.segment = 1, .sized_at_launch = true, .columns = true}));
  const Kernel kernel = compile(computation, {.target = cpu()});
  for (const std::int64_t count : {1, 33, 700, 33}) {
    for (const std::int64_t rows : {0, 1, 40}) {
      check(tested, computation, kernel,
            {.segment = count,
             .elements = count * rows,
             .sized_at_launch = true,
             .launch = rows == 1,
             .columns = true});
    }
  }
  EXPECT_EQ(kernel.stats().compiled + kernel.stats().reused, 3) << "one kernel a number";
}

/// Scans of the whole input have code of their own for few elements: what runs is compiled, once.
TEST_F(CpuNumeric, NothingIsCompiledBeforeTheNumberIsKnown) {
  const auto x = input<std::int32_t>("x");
  const Kernel kernel = compile(over(whole(), inclusive_sum(x)), {.target = cpu()});
  const auto variants = [&] { return kernel.stats().compiled + kernel.stats().reused; };
  EXPECT_EQ(variants(), 0);
  EXPECT_FALSE(kernel.plan().empty());
  EXPECT_FALSE(kernel.plan_summary().empty());
  EXPECT_FALSE(kernel.plan_facts().strategy.empty());
  EXPECT_NE(kernel.explain().find(kernel.plan_facts().strategy), std::string::npos);
  const std::vector<std::int32_t> few(100, 2), many(3'000'000, 2);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(std::get<0>(kernel.run<std::int64_t>({{"x", few}})).back(), 200);
    EXPECT_EQ(variants(), 1);
  }
  EXPECT_EQ(std::get<0>(kernel.run<std::int64_t>({{"x", many}})).back(), 6'000'000);
  EXPECT_EQ(variants(), 2);
  // Of folds one code serves any number: it is there at once.
  EXPECT_EQ(compile(over(whole(), sum(x)), {.target = cpu()}).stats().compiled, 1);
}

TEST_F(CpuNumeric, SegmentsWithGaps) {
  bool taken = false;
  for (const char* name : {"sum_f16", "sum_i8", "frames", "q6", "index_i16", "longest_run_f32"}) {
    const TestProgram& tested = program(name);
    std::size_t turn = 0;
    taken = !taken;  // each size for every other program: their number is even
    for (const std::int64_t segment : {1, 7, 16, 33, 64, 257, 4096, 150'001}) {
      taken = !taken;
      if (!taken) continue;
      const Computation computation = tested.over(segments(segment));
      const Kernel kernel = compile(computation, {.target = cpu()});
      for (const std::int64_t gap : {0, 1, 24}) {
        CpuCase c{.segment = segment, .elements = segment * (segment < 300 ? 41 : 3)};
        c.fill = tested.fills[turn % tested.fills.size()];
        c.seed = ++turn;
        c.launch = turn % 2 == 0;
        c.gaps = {gap, 3, 0};
        check(tested, computation, kernel, c);
      }
      // Where processors ask ahead, what is in the caches has one of its own.
      EXPECT_LE(kernel.stats().compiled + kernel.stats().reused,
                2U + (cpu().ahead_bytes > 0 ? 1 : 0))
          << "one kernel for all strides, one without";
    }
  }
}

TEST_F(CpuNumeric, ATailBehindRowsWithGaps) {
  for (const char* name : {"sum_f32", "two_sums_f16", "argmax_f64"}) {
    const TestProgram& tested = program(name);
    for (const std::int64_t segment : {7, 100}) {
      for (const std::int64_t n : {segment - 1, 5 * segment + 3, 6 * segment}) {
        for (const bool launch : {false, true}) {
          check(
              tested,
              {.segment = segment, .elements = n, .tail = true, .launch = launch, .gaps = {5, 1}});
        }
      }
    }
  }
}

TEST_F(CpuNumeric, EmptyInput) {
  for (const char* name :
       {"sum_f16", "basics_i32", "variance_f32", "flags_bool", "norm_f64", "q6"}) {
    const TestProgram& tested = program(name);
    for (std::int64_t segment : {0, 1, 64}) {
      for (bool launch : {false, true})
        check(tested, {.segment = segment, .elements = 0, .launch = launch});
    }
  }
}

TEST_F(CpuNumeric, LongSegmentsAreSharedOut) {
  for (const char* name : {"sum_f32", "dot_i32", "variance_f64", "frames"}) {
    check(program(name), {.segment = 150001, .elements = 3 * 150001, .fill = Fill::whole});
  }
}

/// Numbers of 16 bits.
constexpr std::int64_t kAll = std::int64_t{1} << 16;

/// Every one of them, each before `other`.
Column all_before(DType type, Bits other) {
  Column pairs(type, 2 * kAll);
  for (std::int64_t i = 0; i < kAll; ++i) {
    pairs.set(2 * i, static_cast<Bits>(i));
    pairs.set(2 * i + 1, other);
  }
  return pairs;
}

/// `op` of two of them by its definition, in f32.
Bits in_f32(DType type, Op op, Bits a, Bits b) {
  auto wide = [&](Bits bits) { return evaluate(Op::convert, type, DType::f32, bits); };
  const Bits result = evaluate(op, DType::f32, DType::f32, wide(a), wide(b));
  return evaluate(Op::convert, DType::f32, type, result);
}

/// `run` gets such pairs and tells whether what it made of the i-th is right, for each difficult
/// one.
template <class Run>
void expect_of_all(DType type, const Run& run) {
  for (const Bits other : difficult_values(type)) {
    const auto right = run(all_before(type, other), other);
    int wrong = 0;
    for (std::int64_t i = 0; i < kAll && wrong < 5; ++i) {
      const bool is_right = right(i);
      EXPECT_TRUE(is_right) << name_of(type) << fmt::format(" {:04x} and {:04x}", i, other);
      wrong += is_right ? 0 : 1;
    }
  }
}

/// Every number of 16 bits beside difficult ones: NaN wins, -0 is below +0, infinities are in
/// order.
template <class T>
void expect_ordered() {
  constexpr DType type = kDType<T>;
  const auto x = input<T>("x");
  const Computation computation = over(segments(2), min(x), max(x), max(x, where(x != x)));
  const Kernel kernel = compile(computation, {.target = target("cpu")});
  expect_of_all(type, [&](const Column& pairs, Bits other) {
    auto least = std::make_shared<Column>(type, kAll), most = std::make_shared<Column>(type, kAll),
         nan = std::make_shared<Column>(type, kAll);
    kernel.run_into(
        {{"x", pairs.data(), type, pairs.count()}},
        {{least->data(), type, kAll}, {most->data(), type, kAll}, {nan->data(), type, kAll}});
    return [=](std::int64_t i) {
      const auto a = static_cast<Bits>(i);
      const bool any_nan = std::isnan(codegen::double_of_bits(type, a)) ||
                           std::isnan(codegen::double_of_bits(type, other));
      const double inf = std::numeric_limits<double>::infinity();
      const Bits of_nan = codegen::bits_of_double(type, any_nan ? inf * 0 : -inf);
      return agree(type, least->get(i), in_f32(type, Op::min, a, other)) &&
             agree(type, most->get(i), in_f32(type, Op::max, a, other)) &&
             agree(type, nan->get(i), of_nan);
    };
  });
}

/// The same of what is smallest and largest so far.
template <class T>
void expect_ordered_so_far() {
  constexpr DType type = kDType<T>;
  const auto x = input<T>("x");
  const Kernel kernel =
      compile(over(segments(2), inclusive(min(x)), exclusive(max(x))), {.target = target("cpu")});
  const Bits nothing = codegen::bits_of_double(type, -std::numeric_limits<double>::infinity());
  expect_of_all(type, [&](const Column& pairs, Bits other) {
    auto least = std::make_shared<Column>(type, 2 * kAll),
         most = std::make_shared<Column>(type, 2 * kAll);
    kernel.run_into({{"x", pairs.data(), type, pairs.count()}},
                    {{least->data(), type, 2 * kAll}, {most->data(), type, 2 * kAll}});
    return [=](std::int64_t i) {
      const auto a = static_cast<Bits>(i);
      return agree(type, least->get(2 * i), a) &&
             agree(type, least->get(2 * i + 1), in_f32(type, Op::min, a, other)) &&
             most->get(2 * i) == nothing && agree(type, most->get(2 * i + 1), a);
    };
  });
}

TEST_F(CpuNumeric, NumbersOf16BitsAreInOrder) {
  expect_ordered<f16>();
  expect_ordered<bf16>();
  expect_ordered_so_far<f16>();
  expect_ordered_so_far<bf16>();
}

TEST_F(CpuNumeric, TypedRunGivesVectors) {
  const auto x = input<float>("x");
  const auto a = param<float>("a");
  const Kernel kernel =
      compile(over(segments(4), sum(x * a), count(), any(x > 3), max(x)), {.target = cpu()});
  const std::vector<float> data{1, 2, 3, 4, -1, -2, -3, -4};
  const auto [sums, counts, anys, maxima] =
      kernel.run<float, std::int64_t, bool, float>({{"x", data}, {"a", 2.0F}});
  EXPECT_EQ(sums, (std::vector<float>{20, -20}));
  EXPECT_EQ(counts, (std::vector<std::int64_t>{4, 4}));
  EXPECT_EQ(anys, (std::vector<std::uint8_t>{1, 0}));
  EXPECT_EQ(maxima, (std::vector<float>{4, -1}));
}

/// LLVM once took most of a minute for this kernel, because it compared f16 lane by lane; of f32 it
/// takes seconds, and now of both.
TEST_F(CpuNumeric, ComparisonsOfHalvesCompileLikeThoseOfFloats) {
  const auto compile_ms = [](const char* name) {
    return compile(program(name).over(segments(48)), {.target = cpu()}).stats().compile_ms;
  };
  EXPECT_LT(compile_ms("compare_f16"), 4 * compile_ms("compare_f32"));
}

TEST_F(CpuNumeric, ManyLiteralsAreArgumentsUpToALimit) {
  const auto x = input<float>("x");
  auto with_literals = [&](int count) {
    auto p = let(x * 0.0F);
    for (int i = 0; i < count; ++i) p = let(p + (2.5F + static_cast<float>(i)));
    return over(segments(2), max(p));
  };
  const std::vector<float> data{1, 2};
  const auto [maximum] = compile(with_literals(300), {.target = cpu()}).run<float>({{"x", data}});
  EXPECT_EQ(maximum[0], 300 * 2.5F + 299 * 300 / 2);
  try {
    compile(with_literals(600), {.target = cpu()});
    ADD_FAILURE() << "600 literals were accepted";
  } catch (const UserError& error) {
    EXPECT_EQ(error.code(), ErrorCode::unsupported);
    EXPECT_NE(std::string(error.what()).find("cf::constant"), std::string::npos);
  }
}

/// The same data with other threads or pieces must not give other bits: run_to_run.
TEST_F(CpuNumeric, RunsRepeatToTheBit) {
  const auto x = input<float>("x");
  const Computation computation = over(whole(), sum(x), variance(x), mean(x * x));
  const Kernel kernel = compile(computation, {.target = cpu()});
  const Column data = make_column(DType::f32, 1'000'003, Fill::normal, 9);
  const Bindings bindings{{"x", data.data(), DType::f32, data.count()}};
  const auto first = kernel.run<float, float, float>(bindings);
  for (int i = 0; i < 5; ++i) EXPECT_EQ((kernel.run<float, float, float>(bindings)), first);
}

TEST_F(CpuNumeric, ConcurrentRunsShareOneKernel) {
  const auto x = input<std::int32_t>("x");
  const auto size = param<std::int64_t>("S");
  const Kernel kernel = compile(over(segments(size), sum(x)), {.target = cpu()});
  std::vector<std::int32_t> data(12000);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::int32_t>(i);
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::int64_t segment :
           {std::int64_t{4}, std::int64_t{100}, std::int64_t{t % 2 == 0 ? 1200 : 1500},
            std::int64_t{100}, std::int64_t{100}, std::int64_t{4}}) {
        const auto [sums] = kernel.run<std::int64_t>({{"x", data}, {"S", segment}});
        for (std::size_t s = 0; s < sums.size(); ++s) {
          const auto first = static_cast<std::int64_t>(s) * segment;
          wrong += sums[s] != segment * (2 * first + segment - 1) / 2;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace chainfold::test
