// Indices beyond 2^32 without the memory: the first and the last block of a launch over more than
// 2^32 elements, which are zeros but at the two ends. Only pages that are touched exist. An index
// that lost its upper half on the way would be found elsewhere: its sum is not there, or it is
// outside of what is mapped.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <memory>
#include <span>
#include <stdexcept>

#include <fmt/format.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/compile.hpp"
#include "chainfold/codegen/graph/graph.hpp"
#include "chainfold/codegen/graph/lambda.hpp"
#include "chainfold/codegen/interp/interp.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/runtime/launch/slots.hpp"
#include "chainfold/tests/support/programs.hpp"

namespace chainfold::test {
namespace {

namespace cf = chainfold;

constexpr std::int64_t kBeyond = std::int64_t{1} << 32;
constexpr std::int64_t kEnd = 31;  ///< elements that are not zero at either end

/// Zeros of any size; pages come into being when they are written.
class ZeroPages {
 public:
  explicit ZeroPages(std::int64_t bytes)
      : bytes_(static_cast<std::size_t>(std::max<std::int64_t>(bytes, 1))) {
    data_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (data_ == MAP_FAILED) throw std::runtime_error("mmap failed");
  }
  ~ZeroPages() { munmap(data_, bytes_); }
  ZeroPages(const ZeroPages&) = delete;
  ZeroPages& operator=(const ZeroPages&) = delete;
  [[nodiscard]] void* data() const { return data_; }

 private:
  std::size_t bytes_;
  void* data_ = nullptr;
};

/// What is not zero at element i.
std::int8_t value_of(std::int64_t i) { return static_cast<std::int8_t>(i % 13 * 7 - 40); }

struct LargeCase {
  const char* name;
  const char* plan;
  std::int64_t unit;  ///< elements a segment, or columns; 0: the whole
  bool columns = false, scan = false;
  bool through =
      true;  ///< of scans of the whole input: the last block learns of the first one's sum
  int processors = 0;  ///< of the target; 0: as many as one has
};
constexpr std::int64_t kWide = (1 << 20) + 31;
const LargeCase kCases[] = {
    {"rows", "rows warps=4 depth=1 rows=1 bytes=16 simt", 777},
    {"rows_mma", "rows warps=4 depth=1 rows=1 bytes=16 mma", 4099},
    {"parts", "parts warps=1 depth=8 parts=4096 bytes=16 simt", 0},
    // So many that a block of a staged plan has one tile, or a whole turn and one round more.
    {"staged", "staged warps=4 lanes=32 rows=2 stages=2 burst=4 blocks=2 bytes=16 simt", 777, false,
     false, true, 1 << 20},
    {"staged_mma", "staged warps=4 lanes=32 rows=2 stages=2 burst=4 blocks=2 bytes=16 mma", 777,
     false, false, true, 1 << 20},
    {"staged_turns", "staged warps=4 lanes=32 rows=2 stages=2 burst=5 blocks=1 bytes=16 simt", 777,
     false, false, true, 690'954 / 6},
    {"staged_late", "staged warps=4 lanes=32 rows=2 stages=2 burst=5 late=2 blocks=1 bytes=16 simt",
     777, false, false, true, 690'954 / 40},
    {"staged_bursts",
     "staged warps=4 lanes=32 rows=2 stages=2 burst=5 late=5 blocks=1 bytes=16 simt", 777, false,
     false, true, 1000},
    {"columns", "columns warps=4 depth=4 runs=1 parts=512 bytes=16 simt", kWide, true},
    {"scan_tile", "scan_tile warps=4 depth=2 blocks=0 bytes=16 simt", 37, false, true},
    {"scan_block", "scan_block warps=4 depth=7 blocks=0 bytes=16 simt", 777, false, true},
    {"look_back", "look_back warps=16 depth=8 tile=0 blocks=2 bytes=16 simt", 0, false, true,
     false},
    {"look_back_segments", "look_back warps=16 depth=8 tile=0 blocks=2 bytes=16 simt", 100'003,
     false, true, false},
    {"look_back_across", "look_back warps=16 depth=8 across=64 tile=0 blocks=2 bytes=16 simt",
     100'003, false, true, false},
    {"look_back_heads", "look_back warps=16 depth=8 heads=1 tile=0 blocks=2 bytes=16 simt", 100'003,
     false, true, false},
    {"look_back_long_heads", "look_back warps=16 depth=8 heads=1 tile=0 blocks=2 bytes=16 simt",
     (1 << 30) - (1 << 20) - 1, false, true, false},
    {"propagate", "propagate warps=16 depth=8 tile=0 blocks=2 bytes=16 simt", 0, false, true},
};

/// Lets every product of indices lose its upper half, in a region and what is in it.
void cut_off(codegen::Program& program, codegen::Region& region) {
  std::vector<codegen::Instr> body;
  for (codegen::Instr& instr : region.body) {
    codegen::for_each_region(instr.op, [&](codegen::Region& inner) { cut_off(program, inner); });
    const auto* compute = std::get_if<codegen::Compute>(&instr.op);
    const bool cut = compute != nullptr && compute->op == codegen::Op::mul &&
                     program.type(instr.results[0]) == codegen::uniform(DType::i64);
    body.push_back(std::move(instr));
    if (!cut) continue;
    const codegen::ValueId result = body.back().results[0];
    const auto whole = static_cast<codegen::ValueId>(program.values.size()), half = whole + 1;
    program.values.push_back(codegen::uniform(DType::i64));
    program.values.push_back(codegen::uniform(DType::i32));
    body.back().results[0] = whole;
    body.push_back({codegen::Compute{codegen::Op::convert, {whole}}, {half}});
    body.push_back({codegen::Compute{codegen::Op::convert, {half}}, {result}});
  }
  region.body = std::move(body);
}

/// A plan's launches over more than 2^32 elements, of each the first and the last block.
class LargeRun {
 public:
  explicit LargeRun(const LargeCase& what) : what_(what) {
    const std::int64_t unit = what.unit > 0 ? what.unit : 1037;
    elements_ = ((kBeyond / unit + 2) | 1) * unit;  // an odd number
    const auto x = cf::input<std::int8_t>("x");
    const auto partition = what.columns    ? cf::columns(what.unit)
                           : what.unit > 0 ? cf::segments(what.unit)
                                           : cf::whole();
    const Computation computation =
        what.scan ? cf::over(partition, cf::inclusive_sum(x)) : cf::over(partition, cf::sum(x));
    graph_ = computation.graph();
    const codegen::Target target = codegen::gpu_target(90, what.processors);
    compiled_ = codegen::compile_plan(
        graph_, target,
        make_plan(graph_, target, {.segment = what.unit}, codegen::parse_choice(what.plan))
            .value());
  }
  void cut_off_products() {
    for (codegen::Launch& launch : compiled_.program.launches)
      cut_off(compiled_.program, launch.body);
  }

  /// What is wrong at the ends of the output; empty if nothing is. Throws what interpret throws.
  std::string problem() {
    const codegen::Program& program = compiled_.program;
    const runtime::Arguments arguments = runtime::dense_arguments(graph_, elements_, what_.unit);
    runtime::Slots slots(graph_, program, arguments, runtime::range_of(compiled_.plan, arguments));
    slots.set_carry(nullptr, nullptr);
    const auto params = std::span(slots.data(), slots.size()).subspan(program.buffers.size());
    values_ = runtime::output_values(graph_, arguments, 0);
    std::vector<codegen::InterpBuffer> buffers;
    for (const codegen::Buffer& buffer : program.buffers) buffers.push_back(make(buffer, params));
    for (std::size_t i = 0; i < program.launches.size(); ++i) {
      const std::int64_t grid = slots.grid(i);
      if (grid >= std::int64_t{1} << 31) return "more blocks than CUDA has";
      codegen::InterpOptions options;
      options.blocks = {0};
      if (grid > 1) options.blocks.push_back(grid - 1);
      codegen::interpret(program, buffers, params, options, static_cast<int>(i));
    }
    return what_.scan ? scan_problem() : fold_problem();
  }

 private:
  codegen::InterpBuffer make(const codegen::Buffer& buffer, std::span<const std::uint64_t> params) {
    using codegen::BufferRole;
    if (buffer.role == BufferRole::carry_in || buffer.role == BufferRole::carry_out) return {};
    const std::int64_t count = buffer.role == BufferRole::input ? elements_
                               : buffer.role == BufferRole::output
                                   ? values_
                                   : buffer.elements.evaluate(params);
    memory_.push_back(std::make_unique<ZeroPages>(count * size_of(buffer.type)));
    void* const data = memory_.back()->data();
    if (buffer.role == BufferRole::output) sums_ = static_cast<const std::int64_t*>(data);
    if (buffer.role == BufferRole::input) {
      for (std::int64_t i = 0; i < kEnd; ++i) {
        static_cast<std::int8_t*>(data)[i] = value_of(i);
        static_cast<std::int8_t*>(data)[elements_ - 1 - i] = value_of(elements_ - 1 - i);
      }
    }
    return {data, count};
  }
  [[nodiscard]] std::int64_t sum_of(std::int64_t begin, std::int64_t end) const {
    std::int64_t sum = 0;
    for (std::int64_t i = begin; i < end; ++i)
      sum += i < kEnd || i >= elements_ - kEnd ? value_of(i) : 0;
    return sum;
  }
  /// Empty if output `i` is as expected.
  [[nodiscard]] std::string at(std::int64_t i, std::int64_t expected) const {
    if (sums_[i] == expected) return {};
    return fmt::format("output {} is {} instead of {}\n", i, sums_[i], expected);
  }
  [[nodiscard]] std::string scan_problem() const {
    const bool whole = what_.unit == 0;
    const std::int64_t before = whole && what_.through ? sum_of(0, kEnd) : 0;
    const std::int64_t begin = elements_ - (whole ? kEnd : std::min(kEnd, what_.unit));
    std::string problem;
    for (std::int64_t i = 0; i < kEnd; ++i)
      problem += at(i, sum_of(whole ? 0 : i / what_.unit * what_.unit, i + 1));
    for (std::int64_t i = begin; i < elements_; ++i)
      problem += at(i, before + sum_of(begin, i + 1));
    return problem;
  }
  [[nodiscard]] std::string fold_problem() const {
    if (what_.unit == 0) return at(0, sum_of(0, kEnd) + sum_of(elements_ - kEnd, elements_));
    if (!what_.columns)
      return at(0, sum_of(0, what_.unit)) +
             at(values_ - 1, sum_of(elements_ - what_.unit, elements_));
    std::string problem;
    for (std::int64_t c = 0; c < kEnd; ++c)
      problem += at(c, value_of(c)) + at(values_ - 1 - c, value_of(elements_ - 1 - c));
    return problem;
  }

  const LargeCase& what_;
  std::int64_t elements_ = 0, values_ = 0;
  codegen::Graph graph_;
  codegen::Compiled compiled_;
  std::vector<std::unique_ptr<ZeroPages>> memory_;
  const std::int64_t* sums_ = nullptr;
};

class LargeIndex : public testing::TestWithParam<std::size_t> {};

TEST_P(LargeIndex, KeepsItsUpperHalf) { EXPECT_EQ(LargeRun(kCases[GetParam()]).problem(), ""); }

/// What the test above would say.
TEST_P(LargeIndex, IsMissedWithoutItsUpperHalf) {
  LargeRun run(kCases[GetParam()]);
  run.cut_off_products();
  try {
    EXPECT_NE(run.problem(), "");
  } catch (const InternalError& error) {
    const std::string_view said = error.what();
    EXPECT_TRUE(said.find("outside of [0, ") != said.npos || said.find("a race") != said.npos)
        << said;
  }
}

/// Padded segments at both ends, of one group: lanes' own offsets are further apart than 2^32.
TEST(LargeOffsets, KeepTheirUpperHalves) {
  const codegen::Graph graph =
      cf::over(cf::offsets("from", "to"), cf::sum(cf::input<f16>("x"))).graph();
  const codegen::Target target = codegen::gpu_target(90);
  const codegen::Compiled compiled = codegen::compile_plan(
      graph, target,
      make_plan(graph, target, {}, codegen::parse_choice("padded warps=1 depth=2 chain=1"))
          .value());
  constexpr std::int64_t kElements = kBeyond + 77;
  constexpr std::int64_t kBegins[3] = {5, 25, kBeyond + 3}, kEnds[3] = {25, 25, kBeyond + 70};
  runtime::Arguments arguments = runtime::dense_arguments(graph, kElements, 0);
  arguments.bound = true;
  arguments.segments = 3;
  runtime::Slots slots(graph, compiled.program, arguments,
                       runtime::range_of(compiled.plan, arguments));
  slots.set_carry(nullptr, nullptr);
  const std::size_t pointers = compiled.program.buffers.size();
  const auto params = std::span(slots.data(), slots.size()).subspan(pointers);
  std::vector<std::unique_ptr<ZeroPages>> memory;
  std::vector<codegen::InterpBuffer> buffers;
  const float* sums = nullptr;
  for (const codegen::Buffer& buffer : compiled.program.buffers) {
    const bool input = buffer.role == codegen::BufferRole::input;
    const std::int64_t count = input && buffer.index == 0 ? kElements
                               : buffer.role == codegen::BufferRole::scratch
                                   ? buffer.elements.evaluate(params)
                                   : 3;
    memory.push_back(std::make_unique<ZeroPages>(count * size_of(buffer.type)));
    void* const data = memory.back()->data();
    if (buffer.role == codegen::BufferRole::output) sums = static_cast<const float*>(data);
    if (input && buffer.index > 0)
      std::copy_n(buffer.index == 1 ? kBegins : kEnds, 3, static_cast<std::int64_t*>(data));
    if (input && buffer.index == 0) {
      for (std::int64_t i = 0; i < 77; ++i)
        for (const std::int64_t first : {std::int64_t{0}, kBeyond})
          static_cast<std::uint16_t*>(data)[first + i] = static_cast<std::uint16_t>(
              codegen::bits_of_double(DType::f16, static_cast<double>(first > 0 ? i : -i)));
    }
    buffers.push_back({data, count});
  }
  codegen::interpret(compiled.program, buffers, params, {});
  const auto sum_of = [](std::int64_t begin, std::int64_t end) {
    return static_cast<float>((end - begin) * (begin + end - 1)) / 2;
  };
  EXPECT_EQ(sums[0], -sum_of(5, 25));
  EXPECT_EQ(sums[1], 0);
  EXPECT_EQ(sums[2], sum_of(3, 70));
}

INSTANTIATE_TEST_SUITE_P(All, LargeIndex, testing::Range(std::size_t{0}, std::size(kCases)),
                         [](const auto& info) { return std::string(kCases[info.param].name); });

}  // namespace
}  // namespace chainfold::test
