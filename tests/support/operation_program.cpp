#include "chainfold/tests/support/operation_program.hpp"

#include <algorithm>
#include <string>

#include "chainfold/codegen/program/builder.hpp"

namespace chainfold::test {

using namespace codegen;

std::vector<OperationCase> operation_cases(DType type) {
  std::vector<OperationCase> cases;
  for (int i = 0; i < kOpCount; ++i) {
    const Op op = static_cast<Op>(i);
    if (!is_defined(op, type)) continue;
    if (is_cast(op)) {
      for (int to = 0; to < kDTypeCount; ++to)
        if (is_defined(op, type, static_cast<DType>(to)))
          cases.push_back({op, static_cast<DType>(to)});
    } else {
      cases.push_back({op, is_test(op) ? DType::boolean : type});
    }
  }
  return cases;
}

Program operation_program(DType type, int width, int warps) {
  Program program;
  program.name = "operations_" + std::string(name_of(type));
  for (int i = 0; i < 3; ++i)
    program.buffers.push_back({std::string(1, "abc"[i]), type, BufferRole::input, i, 16, {}});
  program.buffers.push_back({"condition", DType::boolean, BufferRole::input, 3, 16, {}});
  const std::vector<OperationCase> cases = operation_cases(type);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const std::string name =
        std::string(name_of(cases[i].op)) + "_" + std::string(name_of(cases[i].result));
    program.buffers.push_back(
        {name, cases[i].result, BufferRole::output, static_cast<int>(i), 16, {}});
  }
  program.params.push_back({"elements", DType::i64, ParamRole::elements, 0});
  Launch launch;
  launch.name = program.name;
  launch.grid = ceil_div(SizeExpr::param(0, "elements"), SizeExpr(kWarpWidth * width * warps));
  launch.warps = warps;
  program.launches.push_back(launch);

  Builder b(program);
  const ValueId row = b.add(b.mul(b.block(), b.i64(warps)), b.convert(b.warp(), DType::i64));
  const ValueId base = b.mul(row, b.i64(kWarpWidth * width));
  const Address at{base, kWarpWidth, 0};
  ValueId inputs[4];
  for (int i = 0; i < 4; ++i) inputs[i] = b.load(i, at, width);
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const auto [op, result] = cases[i];
    ValueId value;
    if (is_cast(op)) {
      value = b.cast(op, inputs[0], result);
    } else if (op == Op::select) {
      value = b.compute(op, {inputs[3], inputs[0], inputs[1]});
    } else {
      value = b.compute(op, Builder::Values(inputs, inputs + arity(op)));
    }
    // A result may be wider than one store: each lane then writes its run in pieces.
    const int piece = std::min(width, 16 / size_of(result));
    for (int first = 0; first < width; first += piece) {
      const Address part{b.add(base, b.i64(first)), 1, width};
      b.store(4 + static_cast<int>(i), piece == width ? at : part,
              piece == width ? value : b.extract(value, first, piece));
    }
  }
  return program;
}

}  // namespace chainfold::test
