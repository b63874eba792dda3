// InlineItems: a few values in place, for what must not allocate.
#pragma once

#include <array>
#include <cstddef>
#include <new>
#include <type_traits>
#include <utility>

#include "chainfold/codegen/base/error.hpp"

namespace chainfold::runtime {

/// Up to kMost values, each made when it is added. Large ones cost nothing before that; an array of
/// optionals is zeroed by compilers.
template <class T, std::size_t kMost>
class InlineItems {
 public:
  static_assert(std::is_trivially_destructible_v<T>);
  InlineItems() = default;
  InlineItems(const InlineItems&) = delete;
  InlineItems& operator=(const InlineItems&) = delete;
  /// Adds T{arguments...}. Throws InternalError beyond kMost.
  template <class... Arguments>
  T& emplace(Arguments&&... arguments) {
    if (size_ == kMost) throw InternalError("InlineItems are full");
    T* const item = ::new (&memory_[size_ * sizeof(T)]) T{std::forward<Arguments>(arguments)...};
    ++size_;
    return *item;
  }
  [[nodiscard]] T* begin() {
    return empty() ? nullptr : std::launder(reinterpret_cast<T*>(memory_.data()));
  }
  [[nodiscard]] T* end() { return begin() + size_; }
  [[nodiscard]] const T* begin() const {
    return empty() ? nullptr : std::launder(reinterpret_cast<const T*>(memory_.data()));
  }
  [[nodiscard]] const T* end() const { return begin() + size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }

 private:
  alignas(T) std::array<std::byte, kMost * sizeof(T)> memory_;
  std::size_t size_ = 0;
};

}  // namespace chainfold::runtime
