#include "chainfold/tests/support/executors.hpp"

#include <cmath>
#include <cstring>
#include <memory>
#include <stdexcept>

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "chainfold/codegen/base/op_table.hpp"
#include "chainfold/codegen/emit/llvm/llvm.hpp"
#include "chainfold/codegen/interp/interp.hpp"
#include "chainfold/codegen/program/verify.hpp"
#include "chainfold/runtime/jit/llvm.hpp"

namespace chainfold::test {

using namespace codegen;

GuardedArray::GuardedArray(DType type, std::int64_t elements, At at)
    : type_(type), elements_(elements) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t bytes =
      static_cast<std::size_t>(elements) * static_cast<std::size_t>(size_of(type));
  const std::size_t inner = (bytes + page - 1) / page * page;
  mapped_ = inner + 2 * page;
  void* memory = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::runtime_error("mmap failed");
  mapping_ = static_cast<unsigned char*>(memory);
  if (inner > 0 && mprotect(mapping_ + page, inner, PROT_READ | PROT_WRITE) != 0)
    throw std::runtime_error("mprotect failed");
  data_ = mapping_ + page + (at == At::end ? inner - bytes : 0);
}

GuardedArray::GuardedArray(GuardedArray&& other) noexcept
    : type_(other.type_),
      elements_(other.elements_),
      mapping_(std::exchange(other.mapping_, nullptr)),
      mapped_(other.mapped_),
      data_(other.data_) {}

GuardedArray::~GuardedArray() {
  if (mapping_ != nullptr) munmap(mapping_, mapped_);
}

Bits GuardedArray::get(std::int64_t i) const {
  Bits bits = 0;
  const auto size = static_cast<std::size_t>(size_of(type_));
  std::memcpy(&bits, data_ + static_cast<std::size_t>(i) * size, size);
  return bits;
}

void GuardedArray::set(std::int64_t i, Bits bits) const {
  const auto size = static_cast<std::size_t>(size_of(type_));
  std::memcpy(data_ + static_cast<std::size_t>(i) * size, &bits, size);
}

std::vector<Bits> difficult_values(DType type) {
  const int width = 8 * size_of(type);
  const Bits all = width == 64 ? ~Bits{0} : (Bits{1} << width) - 1;
  const Bits top = Bits{1} << (width - 1);
  if (type == DType::boolean) return {0, 1};
  if (is_integer(type)) {
    std::vector<Bits> values{0,   1,       2,   3,       7,       8,       10,
                             all, all - 1, top, top - 1, top + 1, all / 3, 100};
    for (int shift = 8; shift < width; shift += 8) {  // around the limits of the smaller types
      const Bits limit = Bits{1} << shift;
      for (const Bits v :
           {limit, limit - 1, limit + 1, limit / 2, limit / 2 - 1, ~limit & all, (0 - limit) & all})
        values.push_back(v);
    }
    return values;
  }
  std::vector<Bits> values;
  // Halfway between neighbours of f16 and of bf16, limits of the integer types, ends of each
  // format.
  for (const double v : {0.0,
                         1.0,
                         2.0,
                         3.0,
                         0.5,
                         1.5,
                         2.5,
                         0.1,
                         1e-3,
                         1.00048828125,
                         1.00146484375,
                         1.00390625,
                         1.01171875,
                         1.000488281250001,
                         1.003906250000001,
                         127.5,
                         128.0,
                         255.0,
                         255.9,
                         256.0,
                         32767.5,
                         32768.0,
                         65504.0,
                         65519.99,
                         65520.0,
                         65536.0,
                         131072.0,
                         2147483520.0,
                         2147483647.0,
                         2147483648.0,
                         4294967040.0,
                         4294967295.0,
                         4294967296.0,
                         9223372036854774784.0,
                         9223372036854775808.0,
                         18446744073709549568.0,
                         18446744073709551616.0,
                         3.3895e38,
                         3.4e38,
                         3.4028235677973366e38,
                         1e39,
                         1.7e308,
                         6e-8,
                         2.98e-8,
                         2.9802322387695312e-08,
                         6.1e-5,
                         1e-38,
                         1e-40,
                         1.4e-45,
                         7e-46,
                         1e-310,
                         5e-324,
                         88.0,
                         710.0,
                         0.9999999,
                         1e10}) {
    values.push_back(bits_of_double(type, v));
    values.push_back(bits_of_double(type, -v));
  }
  const Bits infinity = bits_of_double(type, HUGE_VAL), quiet = bits_of_double(type, std::nan(""));
  // The neighbour of infinity is a signalling NaN.
  for (const Bits v :
       {infinity, infinity - 1, infinity + 1, all, infinity | top, quiet, quiet + 3, top + 1})
    values.push_back(v);
  return values;
}

Bits random_bits(DType type, std::uint64_t random) {
  if (type == DType::boolean) return random >> 63;
  return size_of(type) == 8 ? random : random >> (64 - 8 * size_of(type));
}

bool agree(DType type, Bits a, Bits b, int ulps, double least) {
  if (a == b) return true;
  if (!is_float(type)) return false;
  const double x = double_of_bits(type, a), y = double_of_bits(type, b);
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
  const int width = 8 * size_of(type);
  const Bits sign = Bits{1} << (width - 1);
  if (ulps == 0) return false;
  if (std::fmax(std::fabs(x), std::fabs(y)) < least)
    return std::fabs(x - y) <= ulps * least * (type == DType::f64 ? 0x1p-52 : 0x1p-23);
  if ((a & sign) != (b & sign)) return false;
  return (a > b ? a - b : b - a) <= static_cast<Bits>(ulps);
}

namespace {
/// What the values of a buffer may be apart: buffers are named after their operations.
int ulps_of(const Buffer& buffer) {
  for (int i = 0; i < kOpCount; ++i) {
    const OpRow& row = row_of(static_cast<Op>(i));
    if (buffer.name.starts_with(fmt::format("{}_", row.name))) return row.ulps;
  }
  return 0;
}
}  // namespace

std::string difference(const Program& program, const std::vector<GuardedArray>& arrays,
                       const std::vector<std::uint64_t>& params, int ulps, double least) {
  verify(program);
  const auto copies_of = [](const std::vector<GuardedArray>& all) {
    std::vector<GuardedArray> copies;
    for (const GuardedArray& array : all) {
      GuardedArray& copy = copies.emplace_back(array.type(), array.elements());
      std::memcpy(copy.data(), array.data(),
                  static_cast<std::size_t>(array.elements() * size_of(array.type())));
    }
    return copies;
  };
  const auto args_of = [&](const std::vector<GuardedArray>& all) {
    std::vector<std::uint64_t> args;
    for (const GuardedArray& array : all)
      args.push_back(reinterpret_cast<std::uint64_t>(array.data()));
    args.insert(args.end(), params.begin(), params.end());
    return args;
  };
  const std::vector<GuardedArray> copies = copies_of(arrays), of_baseline = copies_of(arrays);
  std::vector<InterpBuffer> buffers;
  for (std::size_t i = 0; i < copies.size(); ++i) {
    const bool packed = program.buffers[i].packed;
    buffers.push_back({copies[i].data(), copies[i].elements() * (packed ? 8 : 1)});
  }
  interpret(program, buffers, params);

  const LlvmSource source = emit_llvm(program);
  // Shapes of a test often differ in their data alone, and compiling takes longest.
  struct Last {
    std::string text;
    std::shared_ptr<const runtime::CpuModule> baseline, optimised;
  };
  static Last last;
  if (last.text != source.text) {
    const auto object = runtime::compile_cpu_object(source.text, runtime::Effort::baseline);
    last = {.text = source.text,
            .baseline = runtime::CpuModule::load(object.bytes, source.symbols),
            .optimised = runtime::CpuModule::compile(source.text, source.symbols)};
  }
  const auto run = [&](const runtime::CpuModule& module, const std::vector<GuardedArray>& on) {
    const std::vector<std::uint64_t> args = args_of(on);
    for (std::size_t i = 0; i < program.launches.size(); ++i) {
      const std::int64_t blocks = program.launches[i].grid.evaluate(params), half = blocks / 2;
      module.function(i)(0, half, args.data());
      module.function(i)(half, blocks, args.data());
    }
  };
  run(*last.baseline, of_baseline);
  run(*last.optimised, arrays);
  for (std::size_t b = 0; b < arrays.size(); ++b) {
    const DType type = arrays[b].type();
    for (std::int64_t i = 0; i < arrays[b].elements(); ++i) {
      const Bits baseline = of_baseline[b].get(i), optimised = arrays[b].get(i);
      if (agree(type, baseline, optimised)) continue;
      return fmt::format("{}[{}]: baseline code gives {} (0x{:x}), optimised code {} (0x{:x})",
                         program.buffers[b].name, i, text_of_bits(type, baseline), baseline,
                         text_of_bits(type, optimised), optimised);
    }
  }
  for (std::size_t b = 0; b < arrays.size(); ++b) {
    const BufferRole role = program.buffers[b].role;
    if (role == BufferRole::input || (least > 0 && role != BufferRole::output)) continue;
    const int apart = std::max(ulps, ulps_of(program.buffers[b]));
    for (std::int64_t i = 0; i < arrays[b].elements(); ++i) {
      const Bits expected = copies[b].get(i), actual = arrays[b].get(i);
      const DType type = arrays[b].type();
      if (agree(type, expected, actual, apart, least)) continue;
      return fmt::format("{}[{}]: the interpreter gives {} (0x{:x}), the CPU {} (0x{:x})",
                         program.buffers[b].name, i, text_of_bits(type, expected), expected,
                         text_of_bits(type, actual), actual);
    }
  }
  return {};
}

}  // namespace chainfold::test
