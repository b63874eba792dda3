// Inputs and parameters: the names that a launch binds.
#pragma once

#include <string>
#include <string_view>
#include <type_traits>

#include "chainfold/codegen/base/element_rule.hpp"
#include "chainfold/dsl/expr.hpp"

namespace chainfold {
namespace dsl {

/// An array of T, one value an element.
template <DType T>
struct Input : Leaf<T, Level::element> {
  explicit Input(std::string_view text, codegen::InputAccess how = codegen::InputAccess::elements)
      : name(text), access(how) {}
  codegen::NodeId write(Walk& walk) const { return walk.builder.input(name, T, access); }
  std::string name;
  codegen::InputAccess access;
};

template <bool IsBool>
struct AsBitsRule {
  static_assert(IsBool,
                "chainfold: cf::as_bits is for bitmaps, whose values are bool: "
                "cf::input<bool>(\"valid\", cf::as_bits)");
};

/// The position of an element within its segment.
struct Index : Leaf<DType::i64, Level::element> {
  codegen::NodeId write(Walk& walk) const { return walk.builder.index(); }
};

/// A number given at launch.
template <DType T>
struct Param : Leaf<T, Level::uniform> {
  explicit Param(std::string_view text) : name(text) {}
  codegen::NodeId write(Walk& walk) const { return walk.builder.param(name, T); }
  std::string name;
};

}  // namespace dsl

/// The input array `name` of element type T. T is f16, bf16, float, double, an integer of 8 to 64
/// bits, or bool (one byte, 0 or 1). Two inputs of one name are the same input. `cf::over` throws
/// UserError(duplicate_input) if their types differ or a parameter has the name, and
/// UserError(invalid_argument) for an empty name.
template <class T = Unnamed>
auto input(std::string_view name) {
  (void)ElementRule<T>{};
  return dsl::Input<kDType<ElementOr<T>>>(name);
}

/// The type of cf::as_bits.
struct AsBits {};
/// The argument of cf::input that makes it a bitmap.
inline constexpr AsBits as_bits{};

/// The bitmap `name`: a bool for each element, packed into bits as Arrow packs them. Value i is bit
/// i % 8 of byte i / 8, the lowest bit first. A launch binds cf::bits, which may begin at any bit.
/// It may stand wherever another bool input may, as in cf::where(valid). Bitmaps have no strides.
/// Names follow the rules of `input`; one name cannot be a bitmap and an array.
template <class T = Unnamed>
auto input(std::string_view name, AsBits) {
  (void)ElementRule<T>{};
  (void)dsl::AsBitsRule<std::is_same_v<ElementOr<T>, bool>>{};
  return dsl::Input<DType::boolean>(name, codegen::InputAccess::bits);
}

/// The position of each element within its segment, an i64 from 0 on. Operands and filters of
/// folds may use it: cf::sum(x, cf::where(cf::index() % 2 == 0)).
inline auto index() { return dsl::Index(); }

/// A single value of type T, bound to `name` at launch and the same for all elements. Names follow
/// the rules of `input`.
template <class T = Unnamed>
auto param(std::string_view name) {
  (void)ElementRule<T>{};
  return dsl::Param<kDType<ElementOr<T>>>(name);
}

}  // namespace chainfold
