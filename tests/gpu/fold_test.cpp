// Folds that need their order on the GPU, through the public interface, held against plain loops.
#include <gtest/gtest.h>

#include <algorithm>

#include <fmt/format.h>

#include "chainfold/chainfold.hpp"
#include "chainfold/runtime/device.hpp"
#include "chainfold/runtime/jit_nvrtc.hpp"
#include "chainfold/tests/support/programs.hpp"
#include "chainfold/tests/support/scalar_folds.hpp"

namespace chainfold::test {
namespace {

class GpuFoldOrder : public testing::TestWithParam<std::size_t> {};

TEST_P(GpuFoldOrder, IsThatOfTheElements) {
  if (runtime::device_count() == 0) GTEST_SKIP() << "there is no GPU";
  if (!runtime::nvrtc_available()) GTEST_SKIP() << "NVRTC was not found";
  const ScalarFold& fold = scalar_folds()[GetParam()];
  const TestProgram& tested = program(fold.program);
  std::size_t turn = GetParam();
  for (const std::int64_t segment : kOrderSizes) {
    ++turn;
    const Computation computation = tested.over(segment > 0 ? segments(segment) : whole());
    const Kernel kernel = compile(computation, {.target = target("gpu")});
    const std::int64_t elements =
        segment == 0 ? 3000017 : segment * std::clamp<std::int64_t>(40000 / segment, 3, 2085);
    const Fill fill = tested.fills[turn % tested.fills.size()];
    SCOPED_TRACE(fmt::format("{}, segment {}, {} elements of {}", fold.program, segment, elements,
                             name_of(fill)));
    const codegen::GraphInput& in = computation.graph().inputs[0];
    std::vector<Column> inputs, outputs;
    inputs.push_back(make_column(in.type, elements, fill, turn));
    const std::int64_t count = segment == 0 ? 1 : elements / segment;
    Outputs bound;
    for (std::size_t o = 0; o < computation.outputs(); ++o)
      outputs.emplace_back(computation.output_type(o), count);
    for (Column& column : outputs)
      bound.push_back(OutputBinding(column.data(), column.type(), count));
    kernel.run_into({Binding(in.name, inputs[0].data(), in.type, elements)}, bound);
    EXPECT_EQ(compare(fold, inputs, outputs, segment, elements), "");
  }
}

INSTANTIATE_TEST_SUITE_P(All, GpuFoldOrder, testing::Range(std::size_t{0}, scalar_folds().size()),
                         [](const auto& info) { return scalar_folds()[info.param].program; });

}  // namespace
}  // namespace chainfold::test
