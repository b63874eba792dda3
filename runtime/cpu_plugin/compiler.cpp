#include "compiler.hpp"

#include <llvm/Analysis/CGSCCPassManager.h>
#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/AsmParser/Parser.h>
#include <llvm/ExecutionEngine/Orc/CompileUtils.h>
#include <llvm/IR/DiagnosticInfo.h>
#include <llvm/IR/DiagnosticPrinter.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PassInstrumentation.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/PrettyStackTrace.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/SROA.h>

#include <mutex>

#include "additions.hpp"
#include "bytes.hpp"
#include "halves.hpp"
#include "hidden.hpp"
#include "host.hpp"
#include "masked.hpp"
#include "masks.hpp"
#include "minima.hpp"
#include "opaque_functions.hpp"
#include "order.hpp"
#include "schedule.hpp"
#include "vector_calls.hpp"

namespace chainfold::runtime::cpu {
namespace {

/// LLVM reports what it cannot select or encode through report_fatal_error, which ends the process
/// unless its handler leaves by an exception.
struct FatalError {
  std::string reason;
};

[[noreturn]] void throw_fatal_error(void*, const char* reason, bool) { throw FatalError{reason}; }

struct Diagnostics {
  std::string errors;
};

void collect_diagnostic(const llvm::DiagnosticInfo* info, void* context) {
  if (info->getSeverity() != llvm::DS_Error) return;
  std::string& errors = static_cast<Diagnostics*>(context)->errors;
  llvm::raw_string_ostream out(errors);
  llvm::DiagnosticPrinterRawOStream printer(out);
  info->print(printer);
  out << '\n';
}

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

/// The verifier prints the instruction it refuses but no line; the text is ours, so the printed
/// instruction usually stands in it word by word.
std::int32_t line_of_printed_instruction(std::string_view ir, std::string_view log) {
  const auto for_each_line = [](std::string_view text, auto&& visit) {
    std::int32_t number = 1;
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      if (visit(text.substr(0, end), number++)) return;
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
  };
  std::int32_t found = 0;
  for_each_line(log, [&](std::string_view printed, std::int32_t) {
    if (printed.empty() || printed.front() != ' ') return false;
    const std::string_view wanted = trim(printed);
    for_each_line(ir, [&](std::string_view line, std::int32_t number) {
      // Both sides may carry a comment: the printer's predecessors, or the generator's own.
      if (wanted.empty() ||
          trim(line.substr(0, line.find(';'))) != trim(wanted.substr(0, wanted.find(';')))) {
        return false;
      }
      found = number;
      return true;
    });
    return found != 0;
  });
  return found;
}

std::unique_ptr<llvm::Module> parse(std::string_view ir, const llvm::TargetMachine& machine,
                                    llvm::LLVMContext& context, Failure& failure) {
  llvm::SMDiagnostic diagnostic;
  // The host's layout from the start: the alignment of a load that names none depends on it.
  const std::string layout = machine.createDataLayout().getStringRepresentation();
  std::unique_ptr<llvm::Module> module =
      llvm::parseAssembly(llvm::MemoryBufferRef(ir, "ir"), diagnostic, context, nullptr,
                          [&](llvm::StringRef, llvm::StringRef) { return layout; });
  if (!module) {
    llvm::raw_string_ostream out(failure.message);
    diagnostic.print(nullptr, out, /*ShowColors=*/false);
    failure.line = std::max(diagnostic.getLineNo(), 0);
    return nullptr;
  }
  module->setTargetTriple(host().triple);
  std::string log;
  llvm::raw_string_ostream out(log);
  if (llvm::verifyModule(*module, &out)) {
    failure.line = line_of_printed_instruction(ir, log);
    failure.message = std::move(log);
    return nullptr;
  }
  return module;
}

void target_host(llvm::Module& module) {
  for (llvm::Function& function : module)
    if (!function.isDeclaration()) target_function(function);
}

void optimize(llvm::Module& module, llvm::TargetMachine& machine, const Effort& effort) {
  llvm::PipelineTuningOptions tuning;
  tuning.SLPVectorization = true;
  llvm::PassInstrumentationCallbacks callbacks;
  callbacks.registerShouldRunOptionalPassCallback(
      [&](llvm::StringRef, llvm::Any) { return !effort.is_given_up(); });
  // Registers the host's TargetIRAnalysis.
  llvm::PassBuilder builder(&machine, tuning, std::nullopt, &callbacks);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  const auto run = [&](llvm::FunctionPassManager passes) {
    llvm::ModulePassManager all;
    all.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(passes)));
    all.run(module, modules);
  };
  // Values out of memory, and each once.
  const auto few_passes = [] {
    llvm::FunctionPassManager passes;
    passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
    passes.addPass(llvm::EarlyCSEPass());
    return passes;
  };
  if (has_powers(module)) {  // squares and roots among them, in both tiers
    llvm::FunctionPassManager passes = few_passes();
    passes.addPass(llvm::InstCombinePass());
    run(std::move(passes));
  }
  hide_functions(module);
  if (effort.tier == CHAINFOLD_CPU_OPTIMISED)
    builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);
  else  // later steps take time by the instruction, of which these passes leave few
    run(few_passes());
  show_functions(module);
}

/// One compilation; owned apart so that it can be given up whole after a fatal error.
struct Compilation {
  explicit Compilation(const Effort& how) : effort(how), kept_order(how) {}

  const Effort effort;
  Diagnostics diagnostics;
  KeptOrder kept_order;
  llvm::LLVMContext context;
  std::unique_ptr<llvm::TargetMachine> machine;
  std::unique_ptr<llvm::Module> module;

  std::unique_ptr<llvm::MemoryBuffer> run(std::string_view ir, Failure& failure) {
    const auto is_given_up = [&] { return failure.given_up = effort.is_given_up(); };
    context.setDiagnosticHandlerCallBack(collect_diagnostic, &diagnostics);
    machine = make_target_machine(failure.message);
    if (!machine) return nullptr;
    if (effort.tier == CHAINFOLD_CPU_BASELINE) machine->setOptLevel(llvm::CodeGenOptLevel::None);
    module = parse(ir, *machine, context, failure);
    if (!module || is_given_up()) return nullptr;
    target_host(*module);
    sum_bytes(*module);
    optimize(*module, *machine, effort);
    call_vector_functions(*module);
    split_masked(*module);
    rewrite_minima(*module);
    round_halves(*module);
    for (llvm::Function& function : *module) {
      if (function.isDeclaration()) continue;
      order_by_operands(function);  // before constants are joined beside their uses
      Hidden hidden(function);
      rewrite_choices(function, hidden);
      spread_additions(function, hidden);
      kept_order.look_at(function);
    }
    context.setOptPassGate(kept_order);
    if (is_given_up()) return nullptr;
    auto object = llvm::orc::SimpleCompiler(*machine)(*module);
    if (is_given_up()) {  // passes were left out
      if (!object) llvm::consumeError(object.takeError());
      return nullptr;
    }
    if (!object) {
      failure.message = llvm::toString(object.takeError());
      return nullptr;
    }
    if (!diagnostics.errors.empty()) {
      failure.message = diagnostics.errors;
      return nullptr;
    }
    return std::move(*object);
  }
};

}  // namespace

std::unique_ptr<llvm::MemoryBuffer> compile_to_object(std::string_view ir, const Effort& effort,
                                                      Failure& failure) {
  static std::once_flag installed;
  std::call_once(installed, [] {
    llvm::install_fatal_error_handler(throw_fatal_error);
    llvm::install_bad_alloc_error_handler([](void*, const char*, bool) { throw std::bad_alloc(); });
  });
  auto compilation = std::make_unique<Compilation>(effort);
  const void* stack_state = llvm::SavePrettyStackState();
  try {
    return compilation->run(ir, failure);
  } catch (const FatalError& error) {
    failure.message = error.reason;
  } catch (const std::bad_alloc&) {
    failure.message = "out of memory while compiling";
  }
  // LLVM's own frames have no cleanups: handles into the module died without being unlinked, so
  // destroying the module would write through them. Leaking is the only safe way out.
  llvm::RestorePrettyStackState(stack_state);
  (void)compilation.release();
  return nullptr;
}

}  // namespace chainfold::runtime::cpu
