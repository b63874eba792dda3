#include "chainfold/codegen/emit/cuda/cuda.hpp"

#include <algorithm>
#include <array>
#include <set>
#include <unordered_map>

#include <fmt/format.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/emit/cuda/body.hpp"
#include "chainfold/codegen/program/print.hpp"

namespace chainfold::codegen {
namespace {

constexpr char kPrelude[] =
#include "chainfold_prelude.inc"
    ;

// --- the helpers a text needs

constexpr std::array<bool, 256> word_characters() {
  std::array<bool, 256> is{};
  for (const char c :
       std::string_view("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"))
    is[static_cast<unsigned char>(c)] = true;
  return is;
}

template <class Use>
void for_each_word(std::string_view text, Use&& use) {
  static constexpr std::array<bool, 256> kIsWord = word_characters();
  const auto is_word = [&](std::size_t i) { return kIsWord[static_cast<unsigned char>(text[i])]; };
  for (std::size_t i = 0; i < text.size();) {
    std::size_t end = i;
    while (end < text.size() && is_word(end)) ++end;
    if (end > i) use(text.substr(i, end - i));
    i = end + 1;
  }
}

/// The device helpers, and what calls what.
class Prelude {
 public:
  explicit Prelude(std::string_view text) {
    constexpr std::string_view kMark = "// @helper ";
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size() - 1);
      const std::string_view line = text.substr(0, end + 1);
      text.remove_prefix(end + 1);
      if (line.starts_with(kMark)) {
        for_each_word(line.substr(kMark.size()), [&](std::string_view name) {
          by_name_[name].push_back(helpers_.size());
          begins_[static_cast<unsigned char>(name[0])] = true;
        });
        helpers_.emplace_back();
      } else if (!helpers_.empty() && !line.starts_with("//") && line != "\n") {
        // Comments stay behind: they would only cost time, and name helpers that nothing calls.
        helpers_.back().text += line;
      }
    }
    for (Helper& helper : helpers_) helper.callees = named_in(helper.text);
  }

  [[nodiscard]] std::string needed_by(std::string_view text) const {
    std::vector<bool> taken(helpers_.size(), false);
    std::vector<std::size_t> open = named_in(text);
    while (!open.empty()) {
      const std::size_t i = open.back();
      open.pop_back();
      if (taken[i]) continue;
      taken[i] = true;
      open.insert(open.end(), helpers_[i].callees.begin(), helpers_[i].callees.end());
    }
    std::string prelude = "#pragma nv_diag_suppress 177\n";  // values and helpers without a use
    for (std::size_t i = 0; i < helpers_.size(); ++i)
      if (taken[i]) prelude += helpers_[i].text;
    return prelude;
  }

 private:
  // A stretch of the prelude from one "// @helper names" line to the next.
  struct Helper {
    std::string text;
    std::vector<std::size_t> callees;
  };

  /// The helpers whose names are words of `text`, each once.
  [[nodiscard]] std::vector<std::size_t> named_in(std::string_view text) const {
    std::vector<bool> found(helpers_.size(), false);
    std::vector<std::size_t> result;
    for_each_word(text, [&](std::string_view word) {
      if (!begins_[static_cast<unsigned char>(word[0])]) return;  // most words
      const auto entry = by_name_.find(word);
      if (entry == by_name_.end()) return;
      for (const std::size_t i : entry->second) {
        if (!found[i]) result.push_back(i);
        found[i] = true;
      }
    });
    return result;
  }

  std::vector<Helper> helpers_;
  std::unordered_map<std::string_view, std::vector<std::size_t>> by_name_;
  std::array<bool, 256> begins_{};  // the first characters of names
};

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

/// The arrays and rings of a block, in one stretch of memory whose size the launch gives.
std::string shared_text(const Launch& launch) {
  const SharedLayout layout = shared_layout(launch);
  if (layout.bytes == 0) return {};
  std::string text = "  extern __shared__ __align__(128) unsigned char shared[];\n";
  for (int i = 0; i < static_cast<int>(launch.shared.size()); ++i) {
    const std::string_view type = cuda::memory_type_name(launch.shared[i].type);
    text += fmt::format("  {}* const {} = ({}*)(shared + {});\n", type,
                        cuda::shared_name(launch, i), type, layout.arrays[i]);
  }
  for (int i = 0; i < static_cast<int>(launch.rings.size()); ++i) {
    text += fmt::format("  unsigned long long* const {} = (unsigned long long*)(shared + {});\n",
                        cuda::ring_name(launch, i), layout.rings[i]);
    text += fmt::format("  cf_ring_start(lane, {}, {}, {});\n", cuda::ring_name(launch, i),
                        launch.rings[i].slots, launch.bulk_copies ? 1 : kWarpWidth);
  }
  if (layout.ticket >= 0) {
    text += fmt::format("  long long* const {} = (long long*)(shared + {});\n", cuda::kTicketWord,
                        layout.ticket);
  }
  if (layout.gather >= 0) {
    text += fmt::format("  unsigned long long* const {} = (unsigned long long*)(shared + {});\n",
                        cuda::kGatherWords, layout.gather);
  }
  if (!launch.rings.empty()) text += "  __syncthreads();\n";
  return text;
}

/// The hint of kept loads to the second-level cache.
std::string keep_text(const Program& program, const Launch& launch) {
  const NonTemporalStores& streams = launch.non_temporal;
  const std::int64_t unit = streams.factor * streams.evict_last_unit;
  return fmt::format("  const unsigned long long {} = cf_keeps({} >= {}ll);\n", cuda::kKeepHint,
                     cuda::param_name(program, streams.param),
                     (streams.evict_last_from + unit - 1) / unit);
}

std::string kernel_text(const Program& program, const Launch& launch) {
  std::vector<std::string> params, slots;
  for (int i = 0; i < static_cast<int>(program.buffers.size()); ++i) {
    const Buffer& buffer = program.buffers[i];
    const bool input = buffer.role == BufferRole::input;
    const bool constant = input && cuda::inputs_are_constant(program);
    params.push_back(fmt::format("{}{}*{} {}", input ? "const " : "",
                                 cuda::memory_type_name(buffer.type),
                                 constant ? " __restrict__" : "", cuda::buffer_name(program, i)));
  }
  for (int i = 0; i < static_cast<int>(program.params.size()); ++i) {
    const std::string name = cuda::param_name(program, i);
    const DType type = program.params[i].type;
    params.push_back(fmt::format("unsigned long long {}_slot", name));
    slots.push_back(fmt::format("  const {} {} = {};\n", cuda::type_name(type), name,
                                slot_value(type, name + "_slot")));
  }
  const int threads = launch.warps * kWarpWidth;
  // A minimum of one block is no wish at all. But without one ptxas aims at a high occupancy, and
  // then holds back loads and even spills to save registers.
  const std::string bounds = fmt::format("{}, {}", threads, std::max(launch.min_blocks, 1));
  const std::string cluster =
      launch.cluster > 1 ? fmt::format(" __cluster_dims__({}, 1, 1)", launch.cluster) : "";
  std::string text =
      fmt::format("extern \"C\" __global__ void __launch_bounds__({}){}\n{}({}) {{\n", bounds,
                  cluster, launch.name, fmt::join(params, ",\n    "));
  text += "  const int lane = (int)(threadIdx.x & 31u);\n";
  cuda::BodyEmitter emitter(program, launch);
  const std::string body = emitter.emit(launch.body);
  // Taken from one lane, the number is known to be the same for the whole warp.
  if (emitter.uses_warp())
    text += "  const int warp = __shfl_sync(0xffffffffu, (int)(threadIdx.x >> 5), 0);\n";
  for (const std::string& slot : slots) text += slot;
  if (launch.non_temporal.evict_last_from > 0) text += keep_text(program, launch);
  text += shared_text(launch) + body;
  // What a block has handed over lies in its memory until the last of its cluster has read it.
  if (contains<Gather>(launch.body)) text += "  cf_cluster_ends();\n";
  return text + "}\n";
}

}  // namespace

std::string cuda_prelude_for(std::string_view text) {
  static const Prelude prelude(kPrelude);
  return prelude.needed_by(text);
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
