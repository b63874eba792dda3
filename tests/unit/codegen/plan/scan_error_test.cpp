// The bounds of scans against the programs themselves: how many rounded additions an element's
// longest way to a prefix has.
#include <algorithm>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "chainfold/chainfold.hpp"
#include "chainfold/codegen/base/integer_math.hpp"
#include "chainfold/codegen/compile.hpp"
#include "chainfold/codegen/plan/choice.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/plan.hpp"
#include "chainfold/codegen/program/print.hpp"
#include "chainfold/codegen/program/visit.hpp"

namespace chainfold::test {
namespace {

/// The most rounded additions of floats on a way through whole tiles, which the first region of a
/// branch has. What adds a constant zero rounds nothing.
class Chains {
 public:
  explicit Chains(const codegen::Program& program)
      : program_(program), chain_(program.values.size()), zero_(program.values.size()) {
    for (const codegen::Launch& launch : program.launches) follow(launch.body);
  }
  [[nodiscard]] int longest() const { return longest_; }

 private:
  void follow(const codegen::Region& region) {
    for (const codegen::Instr& instr : region.body) {
      ASSERT_FALSE(std::holds_alternative<codegen::For>(instr.op)) << "whole tiles have no loop";
      if (const auto* branch = std::get_if<codegen::If>(&instr.op)) {
        follow(branch->then_body);
        continue;
      }
      int most = 0;
      bool adds_zero = false;
      codegen::for_each_operand(instr.op, [&](codegen::ValueId id) {
        most = std::max(most, chain_[id]);
        adds_zero = adds_zero || zero_[id];
      });
      const auto* constant = std::get_if<codegen::Const>(&instr.op);
      const auto* compute = std::get_if<codegen::Compute>(&instr.op);
      if (compute != nullptr && compute->op == codegen::Op::add && !adds_zero &&
          is_float(program_.type(instr.results[0]).elem))
        ++most;
      for (const codegen::ValueId result : instr.results) {
        chain_[result] = most;
        zero_[result] = (constant != nullptr && constant->bits == 0) ||
                        (std::holds_alternative<codegen::Splat>(instr.op) && adds_zero);
      }
      longest_ = std::max(longest_, most);
    }
  }

  const codegen::Program& program_;
  std::vector<int> chain_;
  std::vector<bool> zero_;
  int longest_ = 0;
};

/// Sums of whole rows: segments begin with lanes or lie within them, so that every addition of the
/// program is one of an element's way.
template <class T>
int check(const char* name, int width) {
  int checked = 0;
  for (std::int64_t segment = 1; segment <= std::int64_t{32} * width; segment *= 2) {
    SCOPED_TRACE(fmt::format("{} in segments of {}", name, segment));
    const Computation computation =
        over(segments(segment), inclusive_sum(cast<float>(input<T>("x"))));
    const codegen::Target target = codegen::gpu_target(90);
    const codegen::PlanRequest request{.segment = segment};
    const codegen::PlanChoice choice{.strategy = codegen::Strategy::scan_tile,
                                     .warps = 4,
                                     .depth = 1,
                                     .bytes = width * static_cast<int>(sizeof(T)),
                                     .mma = false};
    const auto plan = make_plan(computation.graph(), target, request, choice);
    if (!plan) continue;
    const codegen::Program program = compile_plan(computation.graph(), target, *plan).program;
    const int longest = Chains(program).longest();
    EXPECT_LE(longest, plan->folds[0].error_bound_u) << print(program);
    EXPECT_GE(longest, codegen::ceil_log2(segment));
    ++checked;
  }
  return checked;
}

TEST(ScanErrorBounds, CoverTheLongestChainOfAdditions) {
  EXPECT_EQ(check<float>("f32", 4), 8);
  EXPECT_GE(check<f16>("f16", 8) + check<f16>("f16", 4), 15);
  EXPECT_GE(check<std::int8_t>("i8", 16) + check<std::int8_t>("i8", 4), 14);
}

}  // namespace
}  // namespace chainfold::test
