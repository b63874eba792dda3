#include "chainfold/codegen/emit/llvm/llvm.hpp"

#include <set>

#include <fmt/format.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/base/integer_math.hpp"
#include "chainfold/codegen/emit/llvm/body.hpp"
#include "chainfold/codegen/program/print.hpp"
#include "chainfold/codegen/program/streamed_buffers.hpp"
#include "chainfold/codegen/target/target.hpp"

namespace chainfold::codegen {
namespace {

std::string scalar_type(DType type) { return std::string(llvm::register_type(type)); }

/// What a range's streams are: %share blocks each, the first %dealt ones together; none of a short
/// range.
std::string stream_shares(const InterleavedStreams& streams) {
  return fmt::format(
      "  %count = sub i64 %end, %begin\n"
      "  %share = sdiv i64 %count, {0}\n"
      "  %all = mul i64 %share, {0}\n"
      "  %long = icmp sge i64 %count, {1}\n"
      "  %dealt = select i1 %long, i64 %all, i64 0\n",
      streams.count, streams.least);
}

/// The block whose turn (%turn) it is: streams in turn, and what is left of the range in order.
std::string block_of_turn(const InterleavedStreams& streams) {
  return fmt::format(
      "  %strand = and i64 %turn, {}\n"
      "  %round = lshr i64 %turn, {}\n"
      "  %start = mul i64 %strand, %share\n"
      "  %place = add i64 %start, %round\n"
      "  %deals = icmp slt i64 %turn, %dealt\n"
      "  %offset = select i1 %deals, i64 %place, i64 %turn\n"
      "  {} = add nsw i64 %begin, %offset\n",
      streams.count - 1, ceil_log2(streams.count), llvm::kBlockName);
}

/// The instructions that one launch runs for a range of blocks, as a function of its own, which is
/// called once a range. Only there can the pointers be declared free of aliases, which lets LLVM
/// move loads across stores. Pointers to what other threads write meanwhile cannot: the scratch of
/// launches whose blocks wait for each other. Nor can those of inputs and outputs that may be one
/// memory.
std::string range_function(const Program& program, const Launch& launch, bool streams,
                           std::set<std::string>& declarations) {
  llvm::FunctionWriter out;
  out.label("body");
  llvm::BodyEmitter(program, launch, out, streams).emit(launch.body);
  const std::string last = out.current_label();
  const bool interleaves = launch.streams.count > 1;
  const std::string_view counter = interleaves ? "%turn" : llvm::kBlockName;
  out.line(fmt::format("%next = add nsw i64 {}, 1", counter));
  out.line(fmt::format("%more = icmp slt i64 %next, {}", interleaves ? "%count" : "%end"));
  out.line("br i1 %more, label %body, label %done");
  const std::string body = out.take_text();
  declarations.insert(out.declarations().begin(), out.declarations().end());

  std::string params = "i64 %begin, i64 %end";
  const bool waits = contains<Ticket, Publish, Await, Overdue>(launch.body);
  for (std::size_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer& buffer = program.buffers[i];
    const bool shared = buffer.role == BufferRole::scratch ? waits : program.in_place;
    params += fmt::format(", ptr {}nocapture {}align {} {}", shared ? "" : "noalias ",
                          buffer.role == BufferRole::input ? "readonly " : "", buffer.alignment,
                          llvm::buffer_name(static_cast<int>(i)));
  }
  for (std::size_t i = 0; i < program.params.size(); ++i) {
    params += fmt::format(", {} {}", scalar_type(program.params[i].type),
                          llvm::param_name(static_cast<int>(i)));
  }
  constexpr std::string_view kHead = "body:\n";
  std::string text = fmt::format("define internal void @{}.{}({}) noinline{} {{\n", launch.name,
                                 streams ? "stream" : "range", params,
                                 launch.half_vectors ? " \"chainfold-half-vectors\"" : "");
  text += "entry:\n" + out.slots();
  if (interleaves) text += stream_shares(launch.streams);
  text += "  %any = icmp slt i64 %begin, %end\n  br i1 %any, label %body, label %done\n";
  text += kHead;
  text += fmt::format("  {} = phi i64 [ {}, %entry ], [ %next, %{} ]\n", counter,
                      interleaves ? "0" : "%begin", last);
  if (interleaves) text += block_of_turn(launch.streams);
  text += body.substr(kHead.size());
  text += "done:\n";
  // Non-temporal stores are ordered by nothing less: other threads read what was stored when this
  // one says that its range is done.
  if (streams) text += "  fence seq_cst\n";
  return text + "  ret void\n}\n";
}

/// The text that says, as an i1 of the returned name, whether stores to the buffers are
/// non-temporal (Launch::non_temporal). Caches may still hold the inputs' memory.
std::string streaming_condition(const Program& program, const Launch& launch,
                                const std::set<int>& buffers, std::string& text) {
  llvm::FunctionWriter out;
  const std::string count = out.let(fmt::format(
      "mul i64 {}, {}", llvm::param_name(launch.non_temporal.param), launch.non_temporal.factor));
  std::string all = "true";
  const auto require = [&](const std::string& condition) {
    all = out.let(fmt::format("and i1 {}, {}", all, condition));
  };
  const auto address = [&](int buffer) {
    return out.let(fmt::format("ptrtoint ptr {} to i64", llvm::buffer_name(buffer)));
  };
  const auto element_bytes = [&](int buffer) {
    return size_of(program.buffers[static_cast<std::size_t>(buffer)].type);
  };
  const auto bytes = [&](int buffer) {
    return out.let(fmt::format("mul i64 {}, {}", count, element_bytes(buffer)));
  };
  const int along = launch.non_temporal.along;
  for (const int buffer : buffers) {
    const std::string begin = address(buffer), size = bytes(buffer);
    const std::string end = out.let(fmt::format("add i64 {}, {}", begin, size));
    require(out.let(fmt::format("icmp uge i64 {}, {}", size, launch.non_temporal.from)));
    if (buffer != along) {
      // Where the buffer would begin if its lines were at the elements of the other's, and is.
      const std::string there =
          along < 0 ? "0"
                    : out.let(fmt::format("mul i64 {}, {}", address(along),
                                          element_bytes(buffer) / element_bytes(along)));
      const std::string apart = out.let(fmt::format("sub i64 {}, {}", begin, there));
      const std::string low = out.let(fmt::format("and i64 {}, {}", apart, kLineBytes - 1));
      require(out.let(fmt::format("icmp eq i64 {}, 0", low)));
    }
    for (std::size_t i = 0; i < program.buffers.size(); ++i) {
      if (program.buffers[i].role != BufferRole::input) continue;
      const std::string input = address(static_cast<int>(i));
      const std::string behind =
          out.let(fmt::format("add i64 {}, {}", input, bytes(static_cast<int>(i))));
      const std::string above = out.let(fmt::format("icmp uge i64 {}, {}", begin, behind));
      const std::string below = out.let(fmt::format("icmp uge i64 {}, {}", input, end));
      require(out.let(fmt::format("or i1 {}, {}", above, below)));
    }
  }
  text += out.take_text();
  return all;
}

/// The function that the runtime calls: takes the arguments out of their slots.
std::string entry_function(const Program& program, const Launch& launch,
                           const std::set<int>& streamed) {
  std::string text =
      fmt::format("define void @{}(i64 %begin, i64 %end, ptr %args) {{\nentry:\n", launch.name);
  std::string arguments = "i64 %begin, i64 %end";
  std::size_t slot = 0;
  const auto load = [&](const std::string& type, const std::string& name) {
    text += fmt::format(
        "  {0}.slot = getelementptr i64, ptr %args, i64 {1}\n  {0} = load {2}, ptr {0}.slot, align "
        "8\n",
        name, slot++, type);
  };
  for (std::size_t i = 0; i < program.buffers.size(); ++i) {
    const std::string name = llvm::buffer_name(static_cast<int>(i));
    load("ptr", name);
    arguments += fmt::format(", ptr {}", name);
  }
  for (std::size_t i = 0; i < program.params.size(); ++i) {
    const DType type = program.params[i].type;
    std::string name = llvm::param_name(static_cast<int>(i));
    if (type == DType::boolean) {
      load("i8", name + ".byte");
      text += fmt::format("  {0} = icmp ne i8 {0}.byte, 0\n", name);
    } else {
      load(scalar_type(type), name);
    }
    arguments += fmt::format(", {} {}", scalar_type(type), name);
  }
  if (!streamed.empty()) {
    const std::string condition = streaming_condition(program, launch, streamed, text);
    text += fmt::format(
        "  br i1 {0}, label %stream, label %range\nstream:\n  call void @{1}.stream({2})\n"
        "  ret void\nrange:\n",
        condition, launch.name, arguments);
  }
  return text + fmt::format("  call void @{}.range({})\n  ret void\n}}\n", launch.name, arguments);
}

}  // namespace

LlvmSource emit_llvm(const Program& program) {
  LlvmSource source;
  std::set<std::string> declarations;
  bool streams = false;
  for (const Launch& launch : program.launches) {
    if (launch.warps != 1) {
      throw InternalError(fmt::format("launch {} has {} warps a block; the CPU runs one",
                                      launch.name, launch.warps),
                          print(program));
    }
    if (!source.symbols.empty()) source.text += '\n';
    source.text += range_function(program, launch, false, declarations) + '\n';
    std::set<int> streamed;
    if (launch.non_temporal.from > 0) streamed = streamed_buffers(launch.body);
    if (!streamed.empty()) {
      source.text += range_function(program, launch, true, declarations) + '\n';
      streams = true;
    }
    source.text += entry_function(program, launch, streamed);
    source.symbols.push_back(launch.name);
  }
  if (!declarations.empty()) source.text += '\n';
  for (const std::string& declaration : declarations) source.text += declaration;
  if (streams) source.text += "\n!0 = !{i32 1}\n";
  return source;
}

}  // namespace chainfold::codegen
