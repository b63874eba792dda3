#include "chainfold/runtime/launch/bitmaps.hpp"

#include <algorithm>
#include <limits>
#include <string>

#include <fmt/format.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/base/type_names.hpp"
#include "chainfold/runtime/launch/arguments.hpp"

namespace chainfold::runtime {

namespace {

constexpr std::int64_t kBits = 8;  // of a byte

/// Bits that the memory of a bitmap holds from its first one on; -1: not known.
std::int64_t bits_there(const Binding& binding) {
  if (binding.bytes() < 0) return -1;
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const std::int64_t all = binding.bytes() > kMost / kBits ? kMost : kBits * binding.bytes();
  return std::max<std::int64_t>(0, all - binding.first_bit());
}

}  // namespace

void check_bits(const codegen::GraphInput& input, const Binding& binding) {
  const auto fail = [&](ErrorCode code, const std::string& message) {
    throw UserError(code, message, input.name);
  };
  if (input.is_packed() && !binding.is_packed())
    fail(ErrorCode::type_mismatch,
         fmt::format("input '{}' is declared with cf::as_bits but bound to {} data; bind "
                     "cf::bits(bytes, count), or declare cf::input<{}>(\"{}\")",
                     input.name, cpp_name_of(binding.type()), cpp_name_of(binding.type()),
                     input.name));
  if (!binding.is_packed()) return;
  if (!input.is_packed())
    fail(ErrorCode::type_mismatch,
         fmt::format("input '{}' is declared as {} but bound to bits; declare "
                     "cf::input<bool>(\"{}\", cf::as_bits), or bind {} data",
                     input.name, cpp_name_of(input.type), input.name, cpp_name_of(input.type)));
  if (binding.count() < -1)
    fail(ErrorCode::invalid_argument,
         fmt::format("the bitmap '{}' has {} bits; counts are not negative", input.name,
                     binding.count()));
  if (binding.first_bit() < 0)
    fail(ErrorCode::invalid_argument,
         fmt::format("the bitmap '{}' begins at bit {}; the first one is bit 0", input.name,
                     binding.first_bit()));
  if (binding.stride() != 0)
    fail(ErrorCode::invalid_argument,
         fmt::format("the bitmap '{}' has a stride, but bits lie without gaps; bind it without",
                     input.name));
}

std::int64_t elements_of_bits(const codegen::GraphInput& input, const Binding& binding,
                              bool alone) {
  const std::int64_t there = bits_there(binding);
  if (binding.count() < 0) return alone ? there : -1;
  if (there >= 0 && there < binding.count()) {
    throw UserError(
        ErrorCode::length_mismatch,
        fmt::format("the bitmap '{}' of {} bytes has {} bits from bit {} on, not {}", input.name,
                    binding.bytes(), there, binding.first_bit(), binding.count()),
        input.name);
  }
  return binding.count();
}

const std::byte* checked_bitmap(const codegen::GraphInput& input, const Binding& binding,
                                std::int64_t elements) {
  const std::int64_t there = bits_there(binding);
  std::int64_t end = 0;
  if (__builtin_add_overflow(binding.first_bit(), elements, &end) ||
      end > std::numeric_limits<std::int64_t>::max() - kBits) {
    throw UserError(ErrorCode::invalid_argument,
                    fmt::format("the bitmap '{}' of {} bits from bit {} on would end beyond bit "
                                "2^63",
                                input.name, elements, binding.first_bit()),
                    input.name);
  }
  if (there >= 0 && there < elements) {
    throw UserError(ErrorCode::length_mismatch,
                    fmt::format("the bitmap '{}' of {} bytes has {} bits from bit {} on; {} are "
                                "needed, one an element",
                                input.name, binding.bytes(), there, binding.first_bit(), elements),
                    input.name);
  }
  // Where there are no elements any pointer will do, a null pointer too.
  return static_cast<const std::byte*>(binding.data()) +
         (elements > 0 ? binding.first_bit() / kBits : 0);
}

void advance_input(const codegen::Graph& graph, Arguments& arguments, std::size_t i,
                   std::int64_t elements) {
  const codegen::GraphInput& input = graph.inputs[i];
  if (!input.is_packed()) {
    arguments.inputs[i] += elements * size_of(input.type);
    return;
  }
  const std::int64_t bit = arguments.first_bits[i] + elements;
  arguments.inputs[i] += bit / kBits;
  arguments.first_bits[i] = static_cast<std::uint8_t>(bit % kBits);
}

}  // namespace chainfold::runtime
