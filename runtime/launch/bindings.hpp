// What a user hands to a kernel: names with data, outputs with their capacity. All of it lives in
// fixed inline storage, so passing arguments allocates nothing.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <ranges>
#include <string>
#include <string_view>
#include <type_traits>

#include "chainfold/codegen/base/element_rule.hpp"
#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/base/types.hpp"
#include "chainfold/runtime/launch/binding_rules.hpp"
#include "chainfold/runtime/launch/status.hpp"

namespace chainfold {

/// The most inputs and parameters, and the most outputs, of one kernel.
inline constexpr std::size_t kMaxBindings = 32;

/// A number of elements or bytes, from any integer type without a narrowing complaint.
struct Count {
  std::int64_t value = 0;
  constexpr Count() = default;
  template <std::integral T>
  constexpr Count(T v) noexcept
      : value(static_cast<std::int64_t>(v)) {}                        // NOLINT: implicit by design
  constexpr operator std::int64_t() const noexcept { return value; }  // NOLINT
};

/// The name of a binding. A temporary string is copied, so that a list of bindings may outlive it.
/// The text of a literal, a variable or a view is not, and must live as long as the binding.
class BindingName {
 public:
  /// The most bytes of a temporary string. A longer one throws UserError(invalid_argument).
  static constexpr std::size_t kMostCopied = 40;
  BindingName() = default;
  template <class T>
    requires std::convertible_to<const T&, std::string_view>
  BindingName(T&& text) {  // NOLINT: implicit by design
    const std::string_view view = text;
    size_ = view.size();
    if constexpr (std::is_lvalue_reference_v<T> || std::is_trivially_copyable_v<T>) {
      text_ = view.data();
    } else {
      if (size_ > kMostCopied) refuse_long(view);
      std::copy_n(view.data(), size_, copy_.data());
    }
  }
  [[nodiscard]] std::string_view view() const noexcept {
    return {text_ != nullptr ? text_ : copy_.data(), size_};
  }

 private:
  [[noreturn]] static void refuse_long(std::string_view name) {
    throw UserError(ErrorCode::invalid_argument,
                    "the name '" + std::string(name) +
                        "' of a binding is a temporary string of more than 40 characters, which "
                        "the binding does not keep; hold it in a variable, or make it shorter",
                    std::string(name));
  }
  const char* text_ = nullptr;
  std::size_t size_ = 0;
  std::array<char, kMostCopied> copy_{};
};

/// The bits of a bitmap: what is bound to cf::input<bool>(name, cf::as_bits).
class PackedBits {
 public:
  PackedBits(const void* data, std::int64_t bytes, std::int64_t count, std::int64_t offset)
      : data_(data), bytes_(bytes), count_(count), offset_(offset) {}
  [[nodiscard]] const void* data() const noexcept { return data_; }       ///< the first byte
  [[nodiscard]] std::int64_t bytes() const noexcept { return bytes_; }    ///< -1: not given
  [[nodiscard]] std::int64_t count() const noexcept { return count_; }    ///< -1: not given
  [[nodiscard]] std::int64_t offset() const noexcept { return offset_; }  ///< in bits

 private:
  const void* data_;
  std::int64_t bytes_, count_, offset_;
};

/// A bitmap in Arrow's order, from bit `offset` on: `count` values, or as many as the launch has
/// elements. The bytes must live as those of any binding. Bytes without one of these bits are not
/// read.
template <class P>
  requires std::is_pointer_v<P> &&
           std::same_as<std::remove_cv_t<std::remove_pointer_t<P>>, std::uint8_t>
PackedBits bits(const P& data, Count count = -1, Count offset = 0) {
  return {data, -1, count, offset};
}
/// The same of a range of bytes, which must have so many bits: UserError(length_mismatch)
/// otherwise.
template <class R>
  requires std::ranges::range<R>
PackedBits bits(R&& bytes, Count count = -1, Count offset = 0) {
  (void)runtime::BitsRule<R>{};
  return {std::ranges::data(bytes), static_cast<std::int64_t>(std::ranges::size(bytes)), count,
          offset};
}

/// A named input (pointer, type, count, stride) or the value of a named parameter. The data must
/// live until the call that takes the binding returns (for launch: until the kernel has run).
class Binding {
 public:
  Binding() = default;
  /// A contiguous range (a std::vector, std::span or array of elements), a pointer to elements, or
  /// the value of a parameter. A pointer has as many elements as the launch says.
  template <class D>
    requires(!std::same_as<std::remove_cvref_t<D>, PackedBits>)
  Binding(BindingName name, D&& data) : name_(name) {
    using Plain = std::remove_cvref_t<D>;
    (void)runtime::BindingRule<Plain>{};
    (void)typename runtime::BindingRule<Plain>::Elements{};
    (void)runtime::TemporaryRule<runtime::kOwnedTemporary<D>>{};
    if constexpr (runtime::kElementPointer<Plain>) {
      data_ = data;
      type_ = kDType<std::remove_pointer_t<Plain>>;
    } else if constexpr (runtime::kElementRange<Plain>) {
      data_ = std::ranges::data(data);
      type_ = kDType<std::ranges::range_value_t<Plain>>;
      count_ = static_cast<std::int64_t>(std::ranges::size(data));
    } else if constexpr (Element<Plain>) {
      static_assert(sizeof(Plain) <= sizeof(bits_));
      type_ = kDType<Plain>;
      scalar_ = true;
      std::copy_n(reinterpret_cast<const unsigned char*>(&data), sizeof(Plain),
                  reinterpret_cast<unsigned char*>(&bits_));
    }
  }
  /// The bits of a bitmap.
  Binding(BindingName name, const PackedBits& bits)
      : name_(name),
        data_(bits.data()),
        type_(DType::boolean),
        count_(bits.count()),
        bytes_(bits.bytes()),
        first_bit_(bits.offset()),
        packed_(true) {}
  /// A pointer and how many elements there are. `stride` as below.
  template <class T>
  Binding(BindingName name, const T* data, Count count, Count stride = 0)
      : name_(name), data_(data), type_(kDType<ElementOr<T>>), count_(count), stride_(stride) {
    (void)ElementRule<T>{};
  }
  /// A pointer whose type is known only at run time.
  Binding(BindingName name, const void* data, DType type, Count count = -1, Count stride = 0)
      : name_(name), data_(data), type_(type), count_(count), stride_(stride) {}
  /// Refused: a range has a count of its own.
  template <class R>
    requires std::ranges::range<R>
  Binding(BindingName, const R&, Count, Count = 0)
    requires(!std::is_array_v<R>)
  {
    (void)runtime::CountedRangeRule<R>{};
  }

  /// The same data with rows that begin `elements` elements apart, e.g.
  /// Binding("x", matrix).stride(1040). Rows are segments, or the rows whose columns are folded.
  /// With 0, the default, rows have no gaps. Gaps are never read, and the last row needs none.
  [[nodiscard]] Binding stride(Count elements) const {
    Binding strided = *this;
    strided.stride_ = elements;
    return strided;
  }

  [[nodiscard]] std::string_view name() const noexcept { return name_.view(); }
  [[nodiscard]] const void* data() const noexcept { return data_; }
  [[nodiscard]] DType type() const noexcept { return type_; }
  /// Elements of the memory, gaps between rows included; -1: not given.
  [[nodiscard]] std::int64_t count() const noexcept { return count_; }
  [[nodiscard]] std::int64_t stride() const noexcept { return stride_; }
  [[nodiscard]] bool is_scalar() const noexcept { return scalar_; }
  /// Whether the elements are bits, from bit first_bit() on, in memory of bytes() bytes (-1: not
  /// given).
  [[nodiscard]] bool is_packed() const noexcept { return packed_; }
  [[nodiscard]] std::int64_t first_bit() const noexcept { return first_bit_; }
  [[nodiscard]] std::int64_t bytes() const noexcept { return bytes_; }
  [[nodiscard]] std::uint64_t bits() const noexcept {
    return bits_;
  }  ///< a scalar's, low bytes first

 private:
  BindingName name_;
  const void* data_ = nullptr;
  DType type_ = DType::f32;
  std::int64_t count_ = -1;
  std::int64_t stride_ = 0;
  std::uint64_t bits_ = 0;
  std::int64_t bytes_ = -1, first_bit_ = 0;
  bool scalar_ = false, packed_ = false;
};

/// An output array: pointer, type and how many elements fit.
class OutputBinding {
 public:
  OutputBinding() = default;
  template <Element T>
    requires(!std::is_const_v<T>)
  OutputBinding(T* data, Count capacity) : data_(data), type_(kDType<T>), capacity_(capacity) {}
  OutputBinding(void* data, DType type, Count capacity)
      : data_(data), type_(type), capacity_(capacity) {}
  /// A range that is written into: a std::vector, std::span or array of elements (bytes for bool).
  template <runtime::OutputArray R>
  OutputBinding(R&& range) {  // NOLINT: implicit by design
    using T = std::remove_reference_t<std::ranges::range_reference_t<R>>;
    (void)runtime::OutputArrayRule<!std::is_const_v<T>>{};
    (void)ElementRule<std::remove_cv_t<T>>{};
    if constexpr (!std::is_const_v<T>) {
      data_ = std::ranges::data(range);
      type_ = kDType<ElementOr<T>>;
      capacity_ = static_cast<std::int64_t>(std::ranges::size(range));
    }
  }
  [[nodiscard]] void* data() const noexcept { return data_; }
  [[nodiscard]] DType type() const noexcept { return type_; }
  [[nodiscard]] std::int64_t capacity() const noexcept { return capacity_; }

 private:
  void* data_ = nullptr;
  DType type_ = DType::f32;
  std::int64_t capacity_ = 0;
};

/// A list of fixed capacity in inline storage. Throws UserError(invalid_argument) beyond
/// kMaxBindings.
template <class T>
class InlineList {
 public:
  InlineList() = default;
  InlineList(std::initializer_list<T> items) {
    for (const T& item : items) push_back(item);
  }
  void push_back(const T& item) {
    if (size_ == kMaxBindings) {
      throw UserError(ErrorCode::invalid_argument,
                      "a kernel takes at most 32 inputs and parameters, and 32 outputs");
    }
    items_[size_++] = item;
  }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] const T& operator[](std::size_t i) const { return items_[i]; }
  [[nodiscard]] const T* begin() const noexcept { return items_.data(); }
  [[nodiscard]] const T* end() const noexcept { return items_.data() + size_; }

 private:
  std::array<T, kMaxBindings> items_{};
  std::size_t size_ = 0;
};
/// Bindings as a variable. Their data must outlive them, so they take no temporary arrays.
using Bindings = InlineList<Binding>;
using Outputs = InlineList<OutputBinding>;
template <class T>
struct runtime::IsOutputs<InlineList<T>> : std::true_type {};

/// A binding within the braces of a call, where temporary arrays live until the call returns.
class CallBinding {
 public:
  CallBinding(const Binding& binding) : binding_(binding) {}  // NOLINT: implicit by design
  /// What a Binding is made of.
  template <class Name, class... A>
    requires(sizeof...(A) > 0 && std::convertible_to<const Name&, std::string_view> &&
             std::constructible_from<Binding, BindingName, const A&...>)
  CallBinding(const Name& name, const A&... arguments)
      : binding_(BindingName(std::string_view(name)), arguments...) {}
  [[nodiscard]] const Binding& binding() const noexcept { return binding_; }

 private:
  Binding binding_;
};

/// The bindings of one call: a list in braces, {{"x", samples}, {"scale", 2.0f}}, or Bindings.
class CallBindings {
 public:
  CallBindings() = default;
  CallBindings(const Bindings& bindings) : list_(bindings) {}  // NOLINT: implicit by design
  CallBindings(std::initializer_list<CallBinding> items) {
    for (const CallBinding& item : items) list_.push_back(item.binding());
  }
  /// Refused: one binding without braces of its own.
  template <class Name, class... A>
    requires(sizeof...(A) > 0 && std::convertible_to<const Name&, std::string_view>)
  CallBindings(const Name&, const A&...) {
    (void)runtime::BracesRule<Name>{};
  }
  operator const Bindings&() const noexcept { return list_; }  // NOLINT: implicit by design

 private:
  Bindings list_;
};

/// Temporary memory for a launch, on the kernel's device: Kernel::scratch_bytes() bytes, aligned to
/// 256 as device allocations are. A launch refuses scratch that is not aligned to 16 bytes.
struct Scratch {
  void* data = nullptr;
  Count bytes = 0;
};

/// The states with which scans over whole() go on from one launch to the next: carry_bytes() bytes
/// (Kernel), aligned to 16. They lie on the kernel's device, those of the CPU in host memory.
struct Carry {
  void* data = nullptr;
  Count bytes = 0;
};

/// The arguments of Kernel::launch, prepare and scratch_bytes.
struct LaunchArgs {
  /// Of every input, gaps between rows not counted. Segments are as many as the count of the bound
  /// offsets says.
  Count elements = 0;
  Bindings inputs{};       ///< inputs and parameters, in any order
  Outputs outputs{};       ///< in the order of over's outputs
  void* stream = nullptr;  ///< a CUstream or cudaStream_t; null: the legacy default stream
  Scratch scratch{};
  /// The carry_out of the launch before this one, from which scans and folds beside them go on.
  /// Launches of backward scans go from the last elements to the first. `cf::index()` and
  /// cf::count() stay those of this launch. Without a carry_in scans and folds begin anew.
  Carry carry_in{};
  Carry carry_out{};  ///< filled for the next launch; other memory than carry_in
  /// Where a launch over cf::offsets or cf::heads tells of its segments, in memory of the target;
  /// null: nowhere.
  LaunchStatus* status = nullptr;
};

}  // namespace chainfold
