// Computations for tests, by name: together they use every operator, type and fold of the language.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "chainfold/chainfold.hpp"
#include "chainfold/tests/support/data.hpp"

namespace chainfold::test {

/// The value of a parameter of a test program.
struct ParamValue {
  std::string name;
  DType type = DType::f32;
  Bits bits = 0;
};

struct TestProgram {
  std::string name;
  /// The computation over a partition of the caller's choice.
  std::function<Computation(const dsl::Partition&)> over;
  std::vector<ParamValue> params{};
  /// exp, log or pow is in it: executors may differ by some ulp.
  bool transcendental = false;
  /// What it makes sense on; the first is the default.
  std::vector<Fill> fills{Fill::uniform, Fill::whole};
  /// Some results are of too few or too equal elements for any promise.
  bool of_some = false;
};

/// All programs of folds alone, in a fixed order. Names are words joined by '_' and end in the
/// element type where a program exists for several.
const std::vector<TestProgram>& programs();
/// Those with scans, which have fewer partitions and plans of their own.
const std::vector<TestProgram>& scan_programs();
/// One of either. Throws std::invalid_argument for an unknown name.
const TestProgram& program(const std::string& name);

/// Whether a program's scans are those that segments told by offsets have.
bool scans_over_offsets(const TestProgram& program);

/// The bits of the graph's parameters. `segment` stands for a parameter that gives the segment
/// size.
std::vector<Bits> param_bits(const TestProgram& program, const codegen::Graph& graph,
                             std::int64_t segment);

/// The binding of an input: of a bitmap its bits (Column::packed), which have no stride.
Binding input_binding(const codegen::GraphInput& input, const Column& column,
                      std::int64_t stride = 0);
/// The binding of a parameter.
Binding scalar_binding(const codegen::GraphParam& param, Bits bits);

}  // namespace chainfold::test
