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
#include <string_view>
#include <type_traits>

#include "chainfold/codegen/error.hpp"
#include "chainfold/codegen/types.hpp"

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

/// A named input (pointer, type, count, stride) or the value of a named parameter. The name and the
/// data must live until the call that takes the binding returns (for launch: until the kernel has
/// run).
class Binding {
 public:
  Binding() = default;
  /// A contiguous range: a std::vector, std::span or array of elements.
  template <std::ranges::contiguous_range R>
    requires Element<std::ranges::range_value_t<R>>
  Binding(std::string_view name, const R& range)
      : name_(name),
        data_(std::ranges::data(range)),
        type_(kDType<std::ranges::range_value_t<R>>),
        count_(static_cast<std::int64_t>(std::ranges::size(range))) {}
  /// A pointer; without a count, the launch's element count holds. `stride` as below.
  template <Element T>
  Binding(std::string_view name, const T* data, Count count = -1, Count stride = 0)
      : name_(name), data_(data), type_(kDType<T>), count_(count), stride_(stride) {}
  /// A pointer whose type is known only at run time.
  Binding(std::string_view name, const void* data, DType type, Count count = -1, Count stride = 0)
      : name_(name), data_(data), type_(type), count_(count), stride_(stride) {}
  /// The value of a parameter.
  template <class T>
    requires(Element<T> && std::is_arithmetic_v<T>)
  Binding(std::string_view name, T value) : name_(name), type_(kDType<T>), scalar_(true) {
    static_assert(sizeof(T) <= sizeof(bits_));
    std::copy_n(reinterpret_cast<const unsigned char*>(&value), sizeof(T),
                reinterpret_cast<unsigned char*>(&bits_));
  }

  /// The same data with rows that begin `elements` elements apart: segments, or the rows whose
  /// columns are folded. Binding("x", matrix).stride(1040). 0, the default: without a gap. What
  /// lies between rows is never read; behind the last row nothing needs to be.
  [[nodiscard]] Binding stride(Count elements) const {
    Binding strided = *this;
    strided.stride_ = elements;
    return strided;
  }

  [[nodiscard]] std::string_view name() const noexcept { return name_; }
  [[nodiscard]] const void* data() const noexcept { return data_; }
  [[nodiscard]] DType type() const noexcept { return type_; }
  /// Elements of the memory, gaps between rows included; -1: not given.
  [[nodiscard]] std::int64_t count() const noexcept { return count_; }
  [[nodiscard]] std::int64_t stride() const noexcept { return stride_; }
  [[nodiscard]] bool is_scalar() const noexcept { return scalar_; }
  [[nodiscard]] std::uint64_t bits() const noexcept {
    return bits_;
  }  ///< a scalar's, low bytes first

 private:
  std::string_view name_;
  const void* data_ = nullptr;
  DType type_ = DType::f32;
  std::int64_t count_ = -1;
  std::int64_t stride_ = 0;
  std::uint64_t bits_ = 0;
  bool scalar_ = false;
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
using Bindings = InlineList<Binding>;
using Outputs = InlineList<OutputBinding>;

/// Temporary memory for a launch, on the kernel's device, aligned to 256 bytes.
struct Scratch {
  void* data = nullptr;
  Count bytes = 0;
};

/// The states with which scans over whole() go on from one launch to the next, on the kernel's
/// device (the CPU's in host memory), aligned to 16 bytes; Kernel::carry_bytes() many.
struct Carry {
  void* data = nullptr;
  Count bytes = 0;
};

/// The arguments of Kernel::launch and Kernel::scratch_bytes.
struct LaunchArgs {
  Count elements = 0;      ///< of every input, gaps between rows not counted
  Bindings inputs{};       ///< inputs and parameters, in any order
  Outputs outputs{};       ///< in the order of over's outputs
  void* stream = nullptr;  ///< a CUstream or cudaStream_t; null: the legacy default stream
  Scratch scratch{};
  /// What the launch before this one left in its carry_out: scans (backward ones: of what comes
  /// before) and folds beside them go on from there. cf::index() and cf::count() do not: they stay
  /// those of this launch. Nothing: they begin anew.
  Carry carry_in{};
  Carry carry_out{};  ///< filled for the next launch; other memory than carry_in
};

}  // namespace chainfold
