#include "chainfold/codegen/base/op_table.hpp"

#include <cstddef>
#include <iterator>

namespace chainfold::codegen {

namespace {

struct CpuText {
  CpuForm form;
  std::string_view name;
};
constexpr CpuText spelled() { return {CpuForm::spelled, {}}; }
constexpr CpuText intrinsic(std::string_view name) { return {CpuForm::intrinsic, name}; }
constexpr CpuText library(std::string_view name) { return {CpuForm::library, name}; }

constexpr OpRow row(Op op, std::string_view name, OpDomain domain, std::string_view cuda_f32,
                    std::string_view cuda_f64, CpuText cpu, int ulps, int additions, int slots) {
  return {op, name, domain, cuda_f32, cuda_f64, cpu.form, cpu.name, ulps, additions, slots};
}

constexpr OpRow kRows[] = {
#define OPERATION(name, arity, domain, result, commutative, cuda_f32, cuda_f64, cpu, ulps, \
                  additions, slots)                                                        \
  row(Op::name, #name, OpDomain::domain, cuda_f32, cuda_f64, cpu, ulps, additions, slots),
#include "chainfold/codegen/base/op_table.inc"
};
static_assert(std::size(kRows) == kOpCount);

}  // namespace

const OpRow& row_of(Op op) noexcept { return kRows[static_cast<std::size_t>(op)]; }

}  // namespace chainfold::codegen
