// Sizes, memory and states of scans' launches, as the runtime sees them before anything is
// compiled.
#include "chainfold/runtime/launch/scan_arguments.hpp"
#include "chainfold/runtime/launch/slots.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "chainfold/codegen/program/program.hpp"
#include "chainfold/dsl/fold.hpp"
#include "chainfold/dsl/over.hpp"
#include "chainfold/dsl/scan.hpp"
#include "chainfold/tests/support/expect_error.hpp"

namespace chainfold::runtime {
namespace {

namespace cf = chainfold;

struct ScanArguments : testing::Test {
  dsl::Input<DType::f32> x = cf::input<float>("x");
  // A value an element beside a value a segment.
  Computation mixed = cf::over(cf::segments(5, Tail::partial), cf::inclusive_sum(x), cf::max(x));
  std::vector<float> in = std::vector<float>(64), out = std::vector<float>(64);

  Arguments bound(const Computation& computation, float* data, std::int64_t elements) {
    return resolve(computation.graph(), {{"x", static_cast<const float*>(data), elements}}, -1);
  }
};

TEST_F(ScanArguments, EachOutputHasItsOwnNumberOfValues) {
  const codegen::Graph& graph = mixed.graph();
  Arguments arguments = bound(mixed, in.data(), 23);
  EXPECT_EQ(arguments.all_segments(), 5);
  EXPECT_EQ(output_values(graph, arguments, 0), 23);
  EXPECT_EQ(output_values(graph, arguments, 1), 5);
  float* const maxima = out.data() + 23;
  bind_outputs(graph, {{out.data(), 23}, {maxima, 5}}, arguments);
  EXPECT_EQ(arguments.outputs[1], reinterpret_cast<std::byte*>(maxima));
  check_scan_memory(graph, arguments);
  auto refused = [&](const Outputs& outputs, const char* which, const char* words) {
    test::expect_error<UserError>([&] { bind_outputs(graph, outputs, arguments); },
                                  ErrorCode::too_small, which, {words});
  };
  refused({{out.data(), 22}, {maxima, 5}}, "output 0", "23 are needed (one an element)");
  refused({{out.data(), 23}, {maxima, 4}}, "output 1", "5 are needed (one a segment)");
}

TEST_F(ScanArguments, AnOutputWithAValueAnElementMayBeAnInput) {
  const codegen::Graph& graph = mixed.graph();
  auto check = [&](float* sums, float* maxima) {
    Arguments arguments = bound(mixed, in.data(), 23);
    bind_outputs(graph, {{sums, 23}, {maxima, 5}}, arguments);
    check_scan_memory(graph, arguments);
  };
  EXPECT_NO_THROW(check(in.data(), out.data()));
  EXPECT_NO_THROW(check(in.data() + 23, in.data() + 46));  // side by side
  auto refused = [&](float* sums, float* maxima, const char* which, const char* words) {
    test::expect_error<UserError>([&] { check(sums, maxima); }, ErrorCode::invalid_argument, which,
                                  {words});
  };
  refused(in.data() + 1, out.data(), "output 0", "output 0 overlaps input 'x'");
  refused(out.data(), in.data(), "output 1", "output 1 overlaps input 'x'");
  refused(in.data(), in.data() + 22, "output 1", "output 1 overlaps");
  refused(out.data(), out.data() + 22, "output 1", "output 1 overlaps output 0");
  // Folds alone are as they always were: nothing is looked at.
  const Computation folds = cf::over(cf::whole(), cf::max(x));
  Arguments arguments = bound(folds, in.data(), 23);
  bind_outputs(folds.graph(), {{in.data(), 1}}, arguments);
  EXPECT_NO_THROW(check_scan_memory(folds.graph(), arguments));
}

TEST_F(ScanArguments, AlignmentIsThatOfOutputsToo) {
  const codegen::Graph& graph = mixed.graph();
  alignas(16) float memory[64];
  Arguments arguments = bound(mixed, memory, 20);
  EXPECT_EQ(common_alignment(graph, arguments), 16);  // outputs are not known
  bind_outputs(graph, {{memory + 32, 20}, {memory + 53, 4}}, arguments);
  EXPECT_EQ(common_alignment(graph, arguments), 16);
  bind_outputs(graph, {{memory + 34, 20}, {memory + 56, 4}}, arguments);
  EXPECT_EQ(common_alignment(graph, arguments), 8);
  bind_outputs(graph, {{memory + 33, 20}, {memory + 56, 4}}, arguments);
  EXPECT_EQ(common_alignment(graph, arguments), 4);
}

TEST_F(ScanArguments, CarriedStatesLieSixteenBytesApart) {
  const auto graph_of = [](const Computation& computation) { return computation.graph(); };
  const codegen::Graph graph =
      graph_of(cf::over(cf::whole(), cf::inclusive(cf::mean(x)), cf::max(x)));
  EXPECT_EQ(carry_bytes(graph), 48) << "pairs of the mean's sum, and the largest";
  EXPECT_EQ(carry_bytes(mixed.graph()), 0);
  EXPECT_EQ(carry_bytes(graph_of(cf::over(cf::whole(), cf::sum(x)))), 0);
  alignas(16) std::byte memory[96];
  EXPECT_NO_THROW(check_carry(graph, {}, {}));
  EXPECT_NO_THROW(check_carry(graph, {memory, 48}, {memory + 48, 48}));
  const codegen::Graph both =
      graph_of(cf::over(cf::whole(), cf::inclusive_sum(x), cf::inclusive_sum(x, cf::backward)));
  test::expect_error<UserError>([&] { check_carry(both, {}, {memory, 96}); },
                                ErrorCode::unsupported, "carry_out", {"forward and backward"});

  codegen::Program program;
  for (int field = 0; field < 3; ++field) {
    program.buffers.push_back(
        {"in", DType::f32, codegen::BufferRole::carry_in, field, 4, codegen::SizeExpr(1)});
    program.buffers.push_back(
        {"out", DType::f32, codegen::BufferRole::carry_out, field, 4, codegen::SizeExpr(1)});
  }
  test::expect_error<UserError>([&] { check_carries(program); }, ErrorCode::unsupported, "carry",
                                {"cannot go on"});
  program.params = {{"has_in", DType::i64, codegen::ParamRole::has_carry_in, 0},
                    {"has_out", DType::i64, codegen::ParamRole::has_carry_out, 0}};
  EXPECT_NO_THROW(check_carries(program));
  Arguments arguments = bound(cf::over(cf::whole(), cf::sum(x)), in.data(), 8);
  Slots slots(graph, program, arguments, {});
  const std::uint64_t* slot = slots.data();
  for (int i = 0; i < 8; ++i) EXPECT_EQ(slot[i], 0U);
  slots.set_carry(nullptr, memory);
  const auto address = reinterpret_cast<std::uint64_t>(memory);
  EXPECT_EQ(slot[0], 0U);
  EXPECT_EQ(slot[5], address + 32);
  EXPECT_EQ(slot[6], 0U);
  EXPECT_EQ(slot[7], 1U);
  slots.set_carry(memory, memory + 48);
  EXPECT_EQ(slot[2], address + 16);
  EXPECT_EQ(slot[3], address + 64);
  EXPECT_EQ(slot[6], 1U);
}

}  // namespace
}  // namespace chainfold::runtime
