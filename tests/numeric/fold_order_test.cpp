// Folds that need their order as native code of the CPU, through the public interface, held against
// plain loops.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include "chainfold/chainfold.hpp"
#include "chainfold/runtime/jit_llvm.hpp"
#include "chainfold/tests/support/programs.hpp"
#include "chainfold/tests/support/scalar_folds.hpp"

namespace chainfold::test {
namespace {

class CpuFoldOrder : public testing::TestWithParam<std::size_t> {};

TEST_P(CpuFoldOrder, IsThatOfTheElements) {
#ifndef CHAINFOLD_TEST_CPU
  if (!runtime::cpu_plugin_available())
    GTEST_SKIP() << "the CPU plugin was not built (it needs LLVM 19 and oneTBB)";
#endif
  const ScalarFold& fold = scalar_folds()[GetParam()];
  const TestProgram& tested = program(fold.program);
  std::size_t turn = GetParam();
  for (const std::int64_t segment : kOrderSizes) {
    ++turn;
    const Computation computation = tested.over(segment > 0 ? segments(segment) : whole());
    const Kernel kernel = compile(computation, {.target = target("cpu")});
    const std::int64_t elements =
        segment == 0 ? 3000017 : segment * std::clamp<std::int64_t>(40000 / segment, 3, 2085);
    const Fill fill = tested.fills[turn % tested.fills.size()];
    SCOPED_TRACE(fmt::format("{}, segment {}, {} elements of {}", fold.program, segment, elements,
                             name_of(fill)));
    std::vector<Column> inputs;
    const codegen::GraphInput& in = computation.graph().inputs[0];
    inputs.push_back(make_column(in.type, elements, fill, turn, turn % 3 == 0 ? 8 : 0));
    const std::int64_t count = segment == 0 ? 1 : elements / segment;
    std::vector<Column> outputs;
    Outputs bound;
    for (std::size_t o = 0; o < computation.outputs(); ++o)
      outputs.emplace_back(computation.output_type(o), count);
    for (Column& column : outputs)
      bound.push_back(OutputBinding(column.data(), column.type(), count));
    kernel.run_into({Binding(in.name, inputs[0].data(), in.type, elements)}, bound);
    EXPECT_EQ(compare(fold, inputs, outputs, segment, elements), "");
  }
}

INSTANTIATE_TEST_SUITE_P(All, CpuFoldOrder, testing::Range(std::size_t{0}, scalar_folds().size()),
                         [](const auto& info) { return scalar_folds()[info.param].program; });

}  // namespace
}  // namespace chainfold::test
