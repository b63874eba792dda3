// What can be bound, and the messages of the C++ compiler for what cannot.
#pragma once

#include <concepts>
#include <cstdint>
#include <ranges>
#include <type_traits>
#include <vector>

#include "chainfold/codegen/base/element_rule.hpp"
#include "chainfold/codegen/base/types.hpp"

namespace chainfold::runtime {

template <class D>
inline constexpr bool kElementPointer = std::is_pointer_v<D> && Element<std::remove_pointer_t<D>>;

template <class D>
constexpr bool is_element_range() {
  if constexpr (std::ranges::contiguous_range<const D>) {
    return Element<std::ranges::range_value_t<const D>>;
  } else {
    return false;
  }
}
/// Whether D is a contiguous range of elements.
template <class D>
inline constexpr bool kElementRange = is_element_range<D>();

/// Whether D&& is a temporary that takes its elements with it.
template <class D>
inline constexpr bool kOwnedTemporary =
    !std::is_lvalue_reference_v<D> && std::ranges::range<std::remove_cvref_t<D>> &&
    !std::ranges::borrowed_range<std::remove_cvref_t<D>>;

template <class D>
struct IsVectorOfBool : std::false_type {};
template <class A>
struct IsVectorOfBool<std::vector<bool, A>> : std::true_type {};

template <class D>
struct BindingRule {
  static constexpr bool kFits = kElementPointer<D> || kElementRange<D> || Element<D>;
  static constexpr bool kVectorOfBool = IsVectorOfBool<D>::value;
  static constexpr bool kContiguous = std::ranges::contiguous_range<const D>;
  static constexpr bool kScattered = !kVectorOfBool && !kContiguous && std::ranges::range<D>;
  static constexpr bool kVoid = std::is_pointer_v<D> && std::is_void_v<std::remove_pointer_t<D>>;
  static constexpr bool kForeign = !kFits && !kVectorOfBool && !kScattered && !kVoid;
  /// The element type that was meant.
  static constexpr auto meant() {
    if constexpr (kFits || kVectorOfBool || kScattered || kVoid) {
      return std::type_identity<float>{};
    } else if constexpr (kContiguous) {
      return std::type_identity<std::ranges::range_value_t<const D>>{};
    } else if constexpr (std::is_pointer_v<D>) {
      return std::type_identity<std::remove_pointer_t<D>>{};
    } else if constexpr (std::is_arithmetic_v<D> || std::is_enum_v<D>) {
      return std::type_identity<D>{};
    } else {
      return std::type_identity<void>{};
    }
  }
  using Meant = typename decltype(meant())::type;
  static_assert(!kVectorOfBool,
                "chainfold: std::vector<bool> holds bits, kernels read bytes; bind an array of "
                "bool, e.g. std::unique_ptr<bool[]>::get() with its count, or a "
                "std::vector<std::uint8_t> to a cf::input<std::uint8_t>, of which x != 0 is the "
                "condition");
  static_assert(!kScattered,
                "chainfold: the elements of this range do not lie side by side in memory; copy "
                "them into a std::vector and bind that");
  static_assert(!kVoid,
                "chainfold: a pointer to void is bound with its type, e.g. "
                "cf::Binding(\"x\", pointer, cf::DType::f32, count)");
  static_assert(!kForeign || !std::is_void_v<Meant>,
                "chainfold: a binding is a name with a contiguous range of elements, a pointer "
                "and a count, or the number of a parameter, e.g. {{\"x\", samples}}");
  /// ElementRule's message for it.
  using Elements = ElementRule<std::conditional_t<std::is_void_v<Meant>, float, Meant>>;
};

template <bool Temporary>
struct TemporaryRule {
  static_assert(!Temporary,
                "chainfold: a binding of a temporary array, which is gone before the kernel runs; "
                "give the array a name first, or write it into the braces of the call, "
                "kernel.run<float>({{\"x\", make_samples()}})");
};

template <class R>
struct BitsRule {
  static_assert(
      std::ranges::contiguous_range<R> &&
          std::same_as<std::remove_cv_t<std::ranges::range_value_t<R>>, std::uint8_t>,
      "chainfold: cf::bits takes a contiguous range of std::uint8_t, or a pointer to them "
      "with a count");
  static_assert(!kOwnedTemporary<R>,
                "chainfold: a bitmap of a temporary array, which is gone before the kernel runs; "
                "hold it in a variable");
};

template <class R>
struct CountedRangeRule {
  static constexpr bool kNever = std::is_void_v<R>;
  static_assert(kNever,
                "chainfold: a range is bound without a count, it has its own; of a part of it bind "
                "a std::span, of rows with gaps cf::Binding(\"x\", range).stride(elements)");
};

template <class Name>
struct BracesRule {
  static constexpr bool kNever = std::is_void_v<Name>;
  static_assert(kNever,
                "chainfold: bindings are a list, each in braces of its own: two pairs for one, "
                "kernel.run<float>({{\"x\", samples}})");
};

template <class D>
struct IsOutputs : std::false_type {};

/// A range in memory into which an output may be written: any but a list of outputs.
template <class R>
concept OutputArray = std::ranges::contiguous_range<R> && !IsOutputs<std::remove_cvref_t<R>>::value;

template <bool Writable>
struct OutputArrayRule {
  static_assert(Writable, "chainfold: an output is written into an array of constants");
};

}  // namespace chainfold::runtime
