#include "chainfold/codegen/fold_parts.hpp"

#include <fmt/format.h>

#include "chainfold/codegen/error.hpp"

namespace chainfold::codegen {

namespace {

Lambda identity(DType type) { return {.params = {type}, .steps = {}, .results = {0}}; }

}  // namespace

Fold plain(std::string_view name, DType type, Op op, Bits neutral) {
  Fold fold;
  fold.name = fmt::format("{}.{}", name, name_of(type));
  fold.operands = fold.state = {type};
  fold.init = {neutral};
  fold.lift = fold.finalize = identity(type);
  fold.merge.params = {type, type};
  fold.merge.results = {fold.merge.apply(op, {0, 1})};
  fold.tile = op;
  fold.tile_identity = neutral;
  return fold;
}

void require(bool legal, std::string_view fold, DType type) {
  if (!legal) throw InternalError(fmt::format("no {} in {}", fold, name_of(type)));
}

int real(Lambda& lambda, double value) {
  return lambda.constant(DType::f64, bits_of_double(DType::f64, value));
}

}  // namespace chainfold::codegen
