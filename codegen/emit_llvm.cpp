#include "chainfold/codegen/emit_llvm.hpp"

#include <fmt/format.h>

#include <set>

#include "chainfold/codegen/emit_llvm_body.hpp"
#include "chainfold/codegen/error.hpp"

namespace chainfold::codegen {
namespace {

std::string scalar_type(DType type) { return std::string(llvm::register_type(type)); }

/// The instructions that one launch runs for a range of blocks, as a function of its own: only
/// there can the pointers be declared free of aliases, which lets LLVM move loads across stores. It
/// is called once a range. Not so of what other threads write meanwhile (the scratch of launches
/// whose blocks wait for each other), nor of inputs and outputs that may be one memory.
std::string range_function(const Program& program, const Launch& launch,
                           std::set<std::string>& declarations) {
  llvm::FunctionWriter out;
  out.label("body");
  llvm::BodyEmitter(program, launch, out).emit(launch.body);
  const std::string last = out.current_label();
  out.line(fmt::format("%next = add nsw i64 {}, 1", llvm::kBlockName));
  out.line("%more = icmp slt i64 %next, %end");
  out.line("br i1 %more, label %body, label %done");
  const std::string body = out.take_text();
  declarations.insert(out.declarations().begin(), out.declarations().end());

  std::string params = "i64 %begin, i64 %end";
  const bool waits = contains<Ticket, Publish, Await>(launch.body);
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
  std::string text =
      fmt::format("define internal void @{}.range({}) noinline {{\n", launch.name, params);
  text += "entry:\n  %any = icmp slt i64 %begin, %end\n  br i1 %any, label %body, label %done\n";
  text += kHead;
  text +=
      fmt::format("  {} = phi i64 [ %begin, %entry ], [ %next, %{} ]\n", llvm::kBlockName, last);
  text += body.substr(kHead.size());
  return text + "done:\n  ret void\n}\n";
}

/// The function that the runtime calls: takes the arguments out of their slots.
std::string entry_function(const Program& program, const Launch& launch) {
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
  return text + fmt::format("  call void @{}.range({})\n  ret void\n}}\n", launch.name, arguments);
}

}  // namespace

LlvmSource emit_llvm(const Program& program) {
  LlvmSource source;
  std::set<std::string> declarations;
  for (const Launch& launch : program.launches) {
    if (launch.warps != 1 || !launch.shared.empty()) {
      throw InternalError(
          fmt::format("launch {} has {} warps a block and {} shared arrays; the CPU runs one warp "
                      "a block without shared memory",
                      launch.name, launch.warps, launch.shared.size()),
          print(program));
    }
    if (!source.symbols.empty()) source.text += '\n';
    source.text +=
        range_function(program, launch, declarations) + '\n' + entry_function(program, launch);
    source.symbols.push_back(launch.name);
  }
  if (!declarations.empty()) source.text += '\n';
  for (const std::string& declaration : declarations) source.text += declaration;
  return source;
}

}  // namespace chainfold::codegen
