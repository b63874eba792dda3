// Folds over segments that offsets tell, on the CPU through the public interface, and what is
// wrong with bindings of offsets.
#include <gtest/gtest.h>
#include <pthread.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "chainfold/chainfold.hpp"
#include "chainfold/codegen/choose/default.hpp"
#include "chainfold/codegen/legalize.hpp"
#include "chainfold/tests/support/expect_error.hpp"
#include "chainfold/tests/support/on_cpu.hpp"
#include "chainfold/tests/support/programs.hpp"
#include "chainfold/tests/support/ragged.hpp"
#include "chainfold/tests/support/reference.hpp"
#include "chainfold/tests/support/thin.hpp"

namespace chainfold::test {
namespace {

/// Runs or launches a program over segments of every kind, some turns of them.
void check_turns(const TestProgram& tested, std::size_t number) {
  const Target cpu = target("cpu");
  std::optional<Kernel> kernel;
  for (std::size_t i = 0; i < 4; ++i) {
    const std::size_t turn = number + 3 * i;
    SCOPED_TRACE(fmt::format("{}, turn {}", tested.name, turn));
    const std::int64_t counts[] = {30'000, 1000, 9000, 77};
    Ragged ragged =
        make_ragged(kAllLengths[turn % std::size(kAllLengths)], counts[turn % 4], turn + 1,
                    number % 3 == 1, number % 5 == 2 ? DType::i32 : DType::i64);
    if (number % 4 == 3) ragged = by_heads(ragged);
    const Computation computation = tested.over(ragged.partition());
    const codegen::Graph& graph = computation.graph();
    if (!kernel) kernel = compile(computation, {.target = cpu});
    auto inputs = make_inputs(graph, ragged.elements, tested.fills[0], turn + 1);
    set_heads(graph, ragged, inputs);
    const auto bounds = ragged.bounds();
    Bindings bindings;
    for (std::size_t k = 0; k < inputs.size(); ++k)
      bindings.push_back(input_binding(graph.inputs[k], inputs[k]));
    for (std::size_t k = 0; k < bounds.size(); ++k)
      bindings.push_back(Binding(graph.partition.bounds[k].name, bounds[k].data(), bounds[k].type(),
                                 bounds[k].count()));
    const std::vector<Bits> params = param_bits(tested, graph, 0);
    for (std::size_t k = 0; k < params.size(); ++k)
      bindings.push_back(scalar_binding(graph.params[k], params[k]));
    const auto segments = static_cast<std::int64_t>(ragged.segments.size());
    ASSERT_EQ(kernel->output_count(bindings), ragged.heads ? ragged.elements : segments);
    std::vector<Column> actual;
    Outputs outputs;
    for (std::size_t o = 0; o < graph.outputs.size(); ++o) {
      const bool element = graph.node(graph.outputs[o]).level == Level::element;
      actual.emplace_back(graph.node(graph.outputs[o]).type,
                          element ? kernel->output_count(bindings, o) : segments);
      actual.back().fill(std::byte{0x5A});
    }
    for (Column& column : actual)
      outputs.push_back(OutputBinding(column.data(), column.type(), column.count()));
    if (i % 2 == 0) {
      EXPECT_EQ(kernel->run_into(bindings, outputs), segments);
    } else {
      LaunchStatus status{.wrong_offset = 7};
      LaunchArgs args{.elements = ragged.elements, .inputs = bindings, .outputs = outputs};
      args.status = &status;
      const Column scratch(DType::u8, kernel->scratch_bytes(args));
      args.scratch = {const_cast<std::byte*>(scratch.data()), scratch.count()};
      kernel->launch(args);
      EXPECT_TRUE(scratch.sentinel_intact());
      EXPECT_EQ(status.wrong_offset, -1);
      EXPECT_EQ(status.segments, segments);
    }
    for (std::size_t o = 0; o < actual.size(); ++o) {
      if (graph.node(graph.outputs[o]).level != Level::element) continue;
      EXPECT_EQ(touched_between(actual[o], ragged, std::byte{0x5A}), "");
      actual[o] = of_segments(actual[o], ragged);
    }
    const codegen::Graph made = codegen::legalize(graph, cpu);
    ReferenceRequest request{.params = params,
                             .plan = as_written(codegen::choose_plan(made, cpu, {}), made, graph)};
    request.ragged = ragged.segments;
    if (tested.transcendental) request.transcendental_ulp = 4;
    const Verdict verdict = judge(reference(graph, inputs, ragged.elements, request), actual);
    EXPECT_EQ(verdict.problems, "");
    if (!tested.of_some) {
      EXPECT_EQ(verdict.unchecked, 0);
    }
  }
}

class CpuOffsets : public testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_cpu(); !why.empty()) GTEST_SKIP() << why;
  }
};

TEST_P(CpuOffsets, AgreeWithTheReference) { check_turns(programs()[GetParam()], GetParam()); }
// The interpreter runs all of them; what the CPU's code does with a program others tell, too.
INSTANTIATE_TEST_SUITE_P(All, CpuOffsets,
                         testing::Range(std::size_t{0}, programs().size(), std::size_t{2}),
                         [](const auto& info) { return programs()[info.param].name; });

class CpuOffsetsScans : public CpuOffsets {};

TEST_P(CpuOffsetsScans, AgreeWithTheReference) {
  const TestProgram& tested = scan_programs()[GetParam()];
  if (!scans_over_offsets(tested)) GTEST_SKIP() << "not supported over offsets";
  check_turns(tested, GetParam());
}
INSTANTIATE_TEST_SUITE_P(All, CpuOffsetsScans,
                         testing::Range(std::size_t{0}, scan_programs().size()),
                         [](const auto& info) { return scan_programs()[info.param].name; });

class CpuOffsetsErrors : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_cpu(); !why.empty()) GTEST_SKIP() << why;
  }
  static auto kernel() {
    return compile(over(offsets("row_ptr"), sum(input<float>("x"))), {.target = target("cpu")});
  }
  static auto pairs() {
    return compile(over(offsets<std::int32_t>("from", "to"), sum(input<float>("x"))),
                   {.target = target("cpu")});
  }
  const std::vector<float> x{1, 2, 3, 4, 5, 6, 7};
};

TEST_F(CpuOffsetsErrors, GapsAndEmptySegments) {
  const auto [rows] = kernel().run({{"x", x}, {"row_ptr", std::vector<std::int64_t>{1, 1, 3, 6}}});
  EXPECT_EQ(rows, (std::vector<float>{0, 5, 15}));
  const auto [some] = pairs().run({{"x", x},
                                   {"from", std::vector<std::int32_t>{0, 3, 3, 6}},
                                   {"to", std::vector<std::int32_t>{2, 3, 5, 7}}});
  EXPECT_EQ(some, (std::vector<float>{3, 0, 9, 7}));
  const auto [none] = kernel().run({{"x", x}, {"row_ptr", std::vector<std::int64_t>{3}}});
  EXPECT_TRUE(none.empty());
  const auto [empty] =
      kernel().run({{"x", std::vector<float>{}}, {"row_ptr", std::vector<std::int64_t>{0, 0, 0}}});
  EXPECT_EQ(empty, (std::vector<float>{0, 0}));
}

TEST_F(CpuOffsetsErrors, WrongOnesAreNamed) {
  const auto run = [&](const std::vector<std::int64_t>& offsets) {
    return [&, offsets] { static_cast<void>(kernel().run({{"x", x}, {"row_ptr", offsets}})); };
  };
  constexpr auto kWrong = ErrorCode::wrong_offset;
  expect_error<UserError>(run({0, 5, 3, 7}), kWrong, "row_ptr",
                          {"offset 2 of 'row_ptr' is 3, the one before it 5"});
  expect_error<UserError>(run({-1, 5, 7}), kWrong, "row_ptr", {"offset 0 of 'row_ptr' is -1"});
  expect_error<UserError>(run({0, 8}), kWrong, "row_ptr", {"offset 1 of 'row_ptr' is 8"});
  expect_error<UserError>(run({8}), kWrong, "row_ptr", {"offset 0 of 'row_ptr' is 8"});
  expect_error<UserError>(run({-3}), kWrong, "row_ptr", {"offset 0 of 'row_ptr' is -3"});
  expect_error<UserError>(run({0, std::numeric_limits<std::int64_t>::max(), 7}), kWrong, "row_ptr",
                          {"offset 1"});
  expect_error<UserError>(run({0, std::numeric_limits<std::int64_t>::min(), 7}), kWrong, "row_ptr",
                          {"offset 1"});
  expect_error<UserError>(
      [&] {
        static_cast<void>(pairs().run({{"x", x},
                                       {"from", std::vector<std::int32_t>{0, 2}},
                                       {"to", std::vector<std::int32_t>{3, 4}}}));
      },
      kWrong, "from", {"segment 0 of 'from' and 'to' is [0, 3), the next one begins at 2"});
}

TEST_F(CpuOffsetsErrors, BindingsAreChecked) {
  const auto run = [&](const Bindings& bindings) {
    return [&, bindings] { static_cast<void>(kernel().run(bindings)); };
  };
  const std::vector<std::int64_t> offsets{0, 7};
  const std::vector<std::int32_t> narrow{0, 7};
  const Binding data("x", x.data(), x.size());
  const auto bound = [&](const std::int64_t* p, Count n) { return Binding("row_ptr", p, n); };
  expect_error<UserError>(run({data}), ErrorCode::missing_input, "row_ptr", {"'row_ptr'"});
  expect_error<UserError>(run({data, Binding("row_ptr", narrow.data(), narrow.size())}),
                          ErrorCode::type_mismatch, "row_ptr", {"cf::offsets<std::int32_t>"});
  expect_error<UserError>(run({data, Binding("row_ptr", 3)}), ErrorCode::type_mismatch, "row_ptr",
                          {"not a number"});
  expect_error<UserError>(run({data, bound(offsets.data(), 0)}), ErrorCode::length_mismatch,
                          "row_ptr", {"m + 1"});
  expect_error<UserError>(run({data, bound(nullptr, 2)}), ErrorCode::null_pointer, "row_ptr",
                          {"null"});
  expect_error<UserError>(run({data, bound(offsets.data(), 2).stride(2)}),
                          ErrorCode::invalid_argument, "row_ptr", {"stride"});
  expect_error<UserError>(run({data.stride(8), bound(offsets.data(), 2)}),
                          ErrorCode::invalid_argument, "x", {"stride"});
  expect_error<UserError>(
      run({data, Binding("row_ptr", static_cast<const void*>(offsets.data()), DType::i64)}),
      ErrorCode::invalid_argument, "row_ptr", {"no length"});
  const auto* odd =
      reinterpret_cast<const std::int64_t*>(reinterpret_cast<const char*>(offsets.data()) + 4);
  expect_error<UserError>(run({data, bound(odd, 1)}), ErrorCode::misaligned, "row_ptr",
                          {"not aligned"});
  expect_error<UserError>(
      [&] {
        static_cast<void>(pairs().run({{"x", x},
                                       {"from", std::vector<std::int32_t>{0}},
                                       {"to", std::vector<std::int32_t>{1, 2}}}));
      },
      ErrorCode::length_mismatch, "to", {"2 ends 'to' but 1 begins 'from'"});
}

/// Folds whose states no tile has room for, whatever its size.
TEST_F(CpuOffsetsErrors, ManyWideFoldsOfOneKernel) {
  const auto x = input<double>("x");
  const auto all = [&]<std::size_t... I>(std::index_sequence<I...>) {
    return over(offsets("o"), kurtosis(x + static_cast<double>(I * I))...);
  }(std::make_index_sequence<24>());
  const auto kernel = compile(all, {.target = target("cpu")});
  const std::vector<double> values = {1, 2, 3, 4, 10};
  const std::vector<std::int64_t> ends = {0, 5};
  const auto results = kernel.run({{"x", values}, {"o", ends}});
  EXPECT_NEAR(std::get<0>(results)[0], 278.8 / 100 - 3, 0x1p-44);
  EXPECT_NEAR(std::get<23>(results)[0], 278.8 / 100 - 3, 0x1p-34);
}

/// What is pinned keeps the bound as well: 1 and many halves of its unit of rounding.
TEST_F(CpuOffsetsErrors, FewElementsKeepTheBound) {
  const auto x = input<double>("x");
  for (const int apart : {1, 4, 12, 18, 19, 64, 500}) {
    const Kernel kernel =
        compile(over(offsets("o"), sum(x)),
                {.target = target("cpu"),
                 .plan = fmt::format(
                     "merge_path warps=1 depth=1 rows=8 parts=256 apart={} bytes=0 simt", apart)});
    for (const std::int64_t n : {2, 3, 11, 16, 17, 18, 31, 63, 300}) {
      std::vector<double> values(static_cast<std::size_t>(n), 0x1p-53);
      values[0] = 1;
      const auto [sums] =
          kernel.run<double>({{"x", values}, {"o", std::vector<std::int64_t>{0, n}}});
      const double exact = static_cast<double>(n - 1) * 0x1p-53;  // beside the 1
      EXPECT_LE(std::abs((sums[0] - 1) - exact), 4 * std::log2(n) * 0x1p-53 * (1 + exact))
          << apart << ", " << n;
    }
  }
}

TEST_F(CpuOffsetsErrors, OffsetsAreNoOutputs) {
  std::vector<std::int64_t> offsets{0, 3, 7};
  const auto counts = compile(over(chainfold::offsets("row_ptr"), count(), sum(input<float>("x"))),
                              {.target = target("cpu")});
  std::vector<float> sums(2);
  expect_error<UserError>(
      [&] { counts.run_into({{"x", x}, {"row_ptr", offsets}}, std::span(offsets).first(2), sums); },
      ErrorCode::invalid_argument, "output 0", {"overlaps the offsets 'row_ptr'"});
  EXPECT_EQ(offsets, (std::vector<std::int64_t>{0, 3, 7}));
}

/// A thread of little stack, as an engine may have.
TEST_F(CpuOffsetsErrors, ShortStacksDo) {
  constexpr std::size_t kStack = 64 * 1024;
  const auto wide = compile(over(chainfold::offsets("row_ptr"), sum(input<float>("x")),
                                 argmin(input<float>("x")), variance(input<float>("x"))),
                            {.target = target("cpu"), .tiered = false});
  const std::vector<std::int64_t> offsets{0, 3, 7};
  std::vector<float> sums(2), variances(2);
  std::vector<std::int64_t> places(2);
  const std::function<void()> body = [&] {
    wide.run_into({{"x", x}, {"row_ptr", offsets}}, sums, places, variances);
  };
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, kStack), 0);
  pthread_t thread{};
  const auto run = [](void* work) -> void* {
    (*static_cast<const std::function<void()>*>(work))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, const_cast<std::function<void()>*>(&body)),
            0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  EXPECT_EQ(sums, (std::vector<float>{6, 22}));
  EXPECT_EQ(places, (std::vector<std::int64_t>{0, 0}));
}

/// Threads share the stretches out as they come; bits do not depend on it.
TEST_F(CpuOffsetsErrors, BitsAreTheSameEveryTime) {
  const Ragged ragged = make_ragged(Lengths::giant, 60'000, 9);
  const auto y = input<float>("x");
  const auto folds =
      compile(over(offsets("offsets"), sum(y), variance(y)), {.target = target("cpu")});
  const auto kernel = compile(over(offsets("offsets"), sum(y), variance(y), inclusive_sum(y)),
                              {.target = target("cpu")});
  const Column data = make_column(DType::f32, ragged.elements, Fill::normal, 3);
  const std::vector<Column> bounds = ragged.bounds();
  const Bindings bindings{
      Binding("x", static_cast<const void*>(data.data()), DType::f32, data.count()),
      Binding("offsets", static_cast<const void*>(bounds[0].data()), DType::i64,
              bounds[0].count())};
  const auto bits_of_run = [&] {
    const auto [sums, variances, scans] = kernel.run(bindings);
    std::vector<std::uint32_t> bits;
    const auto [own_sums, own_variances] = folds.run(bindings);
    for (const auto* output : {&sums, &variances, &scans, &own_sums, &own_variances})
      for (const float value : *output) bits.push_back(std::bit_cast<std::uint32_t>(value));
    return bits;
  };
  const std::vector<std::uint32_t> first = bits_of_run();
  constexpr int kRuns = thinned(1000);
  for (int i = 1; i < kRuns; ++i) ASSERT_EQ(bits_of_run(), first) << "run " << i;
}

TEST_F(CpuOffsetsErrors, PreparationNeedsNoOffsets) {
  const auto before = kernel();
  before.prepare({.elements = 7});
  before.prepare({.elements = 7}, Sizes::up_to);
  const std::vector<std::int64_t> offsets{0, 3, 7};
  EXPECT_EQ(std::get<0>(before.run({{"x", x}, {"row_ptr", offsets}})), (std::vector<float>{6, 22}));
  expect_error<UserError>([&] { (void)before.scratch_bytes({.elements = 7}); },
                          ErrorCode::missing_input, "row_ptr", {"not bound"});
}

TEST_F(CpuOffsetsErrors, NamesAreTheirOwn) {
  expect_error<UserError>(
      [] { static_cast<void>(over(offsets("x"), sum(input<std::int64_t>("x")))); },
      ErrorCode::duplicate_input, "x", {"a name of its own"});
  expect_error<UserError>(
      [] { static_cast<void>(over(offsets("a", "a"), sum(input<float>("x")))); },
      ErrorCode::duplicate_input, "a", {"a name of its own"});
  expect_error<UserError>([] { static_cast<void>(over(offsets(""), sum(input<float>("x")))); },
                          ErrorCode::invalid_argument, "", {"empty name"});
  const auto x = input<float>("x");
  const auto refused = [&](const Computation& computation, const char* words) {
    expect_error<UserError>(
        [&] { static_cast<void>(compile(computation, {.target = target("cpu")})); },
        ErrorCode::unsupported, "", {words, "not supported yet"});
  };
  refused(over(offsets("o"), inclusive_sum(x) - sum(x)), "elements that read a fold");
  refused(over(offsets("o"), inclusive(sum(x)), inclusive(max(x), backward)), "both directions");
}

}  // namespace
}  // namespace chainfold::test
