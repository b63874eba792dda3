#include "chainfold/codegen/emit_cuda.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <set>

#include "chainfold/codegen/emit_cuda_body.hpp"
#include "chainfold/codegen/error.hpp"

namespace chainfold::codegen {
namespace {

constexpr char kPrelude[] =
#include "chainfold_prelude.inc"
    ;

// --- the helpers a text needs

// A stretch of the prelude from one "// @helper names" line to the next.
struct Helper {
  std::vector<std::string_view> names;
  std::string text;
};

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  const auto is_word = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i;
    while (end < text.size() && is_word(text[end])) ++end;
    if (end > i) words.push_back(text.substr(i, end - i));
    i = end + 1;
  }
  return words;
}

// Comments stay behind: they would only cost time, and name helpers that nobody calls.
std::vector<Helper> helpers_of(std::string_view prelude) {
  constexpr std::string_view kMark = "// @helper ";
  std::vector<Helper> helpers;
  while (!prelude.empty()) {
    const std::size_t end = std::min(prelude.find('\n'), prelude.size() - 1);
    const std::string_view line = prelude.substr(0, end + 1);
    prelude.remove_prefix(end + 1);
    if (line.starts_with(kMark)) {
      helpers.push_back({words_of(line.substr(kMark.size())), {}});
    } else if (!helpers.empty() && !line.starts_with("//") && line != "\n") {
      helpers.back().text += line;
    }
  }
  return helpers;
}

// --- kernels

std::string slot_value(DType type, const std::string& slot) {
  switch (type) {
    case DType::boolean: return fmt::format("({} & 0xff) != 0", slot);
    case DType::f32: return fmt::format("__uint_as_float((unsigned){})", slot);
    case DType::f64: return fmt::format("__longlong_as_double((long long){})", slot);
    default: return fmt::format("({}){}", cuda::type_name(type), slot);
  }
}

std::string registers(int first, int count) {
  std::string text = "{";
  for (int i = 0; i < count; ++i) text += fmt::format("{}%{}", i == 0 ? "" : ", ", first + i);
  return text + "}";
}

/// The function that runs one row of the table. Volatile, because a matrix instruction needs the
/// whole warp: the compiler must not move it under a condition.
std::string mma_function(const MmaRow& row, int index) {
  const std::array<Type, 3> types{fragment(index, Operand::a), fragment(index, Operand::b),
                                  fragment(index, Operand::c)};
  const auto constraint = [](const Type& t) {
    if (t.elem == DType::f64) return "d";
    return t.elem == DType::f32 && t.operand == Operand::c ? "f" : "r";
  };
  const auto argument = [&](const Type& t, const std::string& name) {
    // tf32 operands are the bits of an f32 in an integer register.
    return t.elem == DType::f32 && t.operand != Operand::c
               ? fmt::format("__float_as_uint({})", name)
               : name;
  };
  std::string params, outputs, inputs, operands = registers(0, cuda::variable_count(types[2]));
  for (int i = 0; i < cuda::variable_count(types[2]); ++i) {
    params += fmt::format("{}{}& d{}", i == 0 ? "" : ", ", cuda::variable_type(types[2]), i);
    outputs += fmt::format("{}\"={}\"(d{})", i == 0 ? "" : ", ", constraint(types[2]), i);
  }
  int next = cuda::variable_count(types[2]);
  for (const Type& t : types) {
    const int count = cuda::variable_count(t);
    operands += ", " + registers(next, count);
    next += count;
    for (int i = 0; i < count; ++i) {
      const std::string name = fmt::format("{}{}", "abc"[static_cast<int>(t.operand)], i);
      params += fmt::format(", {} {}", cuda::variable_type(t), name);
      inputs +=
          fmt::format("{}\"{}\"({})", inputs.empty() ? "" : ", ", constraint(t), argument(t, name));
    }
  }
  return fmt::format(
      "__device__ __forceinline__ void {}({}) {{\n  asm volatile(\"{} {};\"\n      : {}\n   "
      "   : {});\n}}\n\n",
      cuda::mma_name(row), params, row.mnemonic, operands, outputs, inputs);
}

void collect_mma_rows(const Program& program, const Region& region, std::set<int>& rows) {
  for (const Instr& instr : region.body) {
    if (std::holds_alternative<Mma>(instr.op)) rows.insert(program.type(instr.results[0]).mma_row);
    if (const auto* loop = std::get_if<For>(&instr.op)) collect_mma_rows(program, loop->body, rows);
    if (const auto* branch = std::get_if<If>(&instr.op)) {
      collect_mma_rows(program, branch->then_body, rows);
      collect_mma_rows(program, branch->else_body, rows);
    }
  }
}

std::string kernel_text(const Program& program, const Launch& launch) {
  std::vector<std::string> params, slots;
  for (int i = 0; i < static_cast<int>(program.buffers.size()); ++i) {
    const Buffer& buffer = program.buffers[i];
    const bool input = buffer.role == BufferRole::input;
    params.push_back(fmt::format("{}{}*{} {}", input ? "const " : "",
                                 cuda::memory_type_name(buffer.type), input ? " __restrict__" : "",
                                 cuda::buffer_name(program, i)));
  }
  for (int i = 0; i < static_cast<int>(program.params.size()); ++i) {
    const std::string name = cuda::param_name(program, i);
    const DType type = program.params[i].type;
    params.push_back(fmt::format("unsigned long long {}_slot", name));
    slots.push_back(fmt::format("  const {} {} = {};\n", cuda::type_name(type), name,
                                slot_value(type, name + "_slot")));
  }
  const int threads = launch.warps * kWarpWidth;
  // A minimum of one block is no wish at all, but without one ptxas aims at a high occupancy: it
  // then holds back loads and even spills to save registers.
  const std::string bounds = fmt::format("{}, {}", threads, std::max(launch.min_blocks, 1));
  std::string text = fmt::format("extern \"C\" __global__ void __launch_bounds__({})\n{}({}) {{\n",
                                 bounds, launch.name, fmt::join(params, ",\n    "));
  text += "  const int lane = (int)(threadIdx.x & 31u);\n";
  cuda::BodyEmitter emitter(program, launch);
  const std::string body = emitter.emit(launch.body);
  // Taken from one lane, the number is known to be the same for the whole warp.
  if (emitter.uses_warp())
    text += "  const int warp = __shfl_sync(0xffffffffu, (int)(threadIdx.x >> 5), 0);\n";
  for (const std::string& slot : slots) text += slot;
  for (int i = 0; i < static_cast<int>(launch.shared.size()); ++i) {
    text += fmt::format("  __shared__ __align__(16) {} {}[{}];\n",
                        cuda::memory_type_name(launch.shared[i].type), cuda::shared_name(launch, i),
                        launch.shared[i].elements);
  }
  return text + body + "}\n";
}

}  // namespace

std::string cuda_prelude_for(std::string_view text) {
  static const std::vector<Helper> helpers = helpers_of(kPrelude);
  std::set<std::string_view> wanted;
  std::vector<bool> taken(helpers.size(), false);
  const auto want = [&](std::string_view from) {
    for (const std::string_view word : words_of(from)) wanted.insert(word);
  };
  want(text);
  for (bool grown = true; grown;) {
    grown = false;
    for (std::size_t i = 0; i < helpers.size(); ++i) {
      if (taken[i]) continue;
      for (const std::string_view name : helpers[i].names)
        taken[i] = taken[i] || wanted.contains(name);
      if (!taken[i]) continue;
      want(helpers[i].text);
      grown = true;
    }
  }
  std::string prelude = "#pragma nv_diag_suppress 177\n";  // values and helpers without a use
  for (std::size_t i = 0; i < helpers.size(); ++i)
    if (taken[i]) prelude += helpers[i].text;
  return prelude;
}

CudaSource emit_cuda(const Program& program, int arch) {
  CudaSource source;
  std::set<int> rows;
  for (const Launch& launch : program.launches) collect_mma_rows(program, launch.body, rows);
  for (const int index : rows) {
    const MmaRow& row = mma_table()[index];
    if (row.first_arch > arch) {
      throw InternalError(
          fmt::format("{} needs sm_{} and was planned for sm_{}", row.name, row.first_arch, arch),
          print(program));
    }
    source.kernels_text += mma_function(row, index);
  }
  for (const Launch& launch : program.launches) {
    if (!source.kernels.empty()) source.kernels_text += '\n';
    source.kernels_text += kernel_text(program, launch);
    source.kernels.push_back(launch.name);
  }
  source.prelude = cuda_prelude_for(source.kernels_text);
  source.text = source.prelude + source.kernels_text;
  return source;
}

}  // namespace chainfold::codegen
