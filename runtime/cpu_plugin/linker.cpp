#include "linker.hpp"

#include <dlfcn.h>
#include <llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h>
#include <llvm/ExecutionEngine/Orc/Core.h>
#include <llvm/ExecutionEngine/Orc/ExecutorProcessControl.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/MemoryBuffer.h>

#include <array>
#include <atomic>

#include "host.hpp"

namespace chainfold::runtime::cpu {
namespace {

using llvm::orc::ExecutionSession;
using llvm::orc::ExecutorAddr;

/// Reports of the session while this thread linked; the error that it returns only says "failed".
thread_local std::string session_report;

struct Linker {
  std::unique_ptr<ExecutionSession> session;
  std::unique_ptr<llvm::orc::ObjectLinkingLayer> layer;
  std::string error;
  std::atomic<std::uint64_t> modules{0};

  Linker() {
    // Work runs on the thread that looks up, so its reports reach that thread's session_report.
    auto control = llvm::orc::SelfExecutorProcessControl::Create(
        nullptr, std::make_unique<llvm::orc::InPlaceTaskDispatcher>());
    if (!control) {
      error = llvm::toString(control.takeError());
      return;
    }
    session = std::make_unique<ExecutionSession>(std::move(*control));
    session->setErrorReporter(
        [](llvm::Error e) { session_report += llvm::toString(std::move(e)) + '\n'; });
    layer = std::make_unique<llvm::orc::ObjectLinkingLayer>(*session);
  }
};

/// Never destroyed: kernels may outlive static objects, and other threads may compile at exit.
Linker& linker() {
  static Linker* const instance = new Linker;
  return *instance;
}

/// Defines in `scope` everything that `buffer` uses and does not define.
bool define_externals(const llvm::MemoryBuffer& buffer, llvm::orc::JITDylib& scope,
                      Failure& failure) {
  auto object = llvm::object::ObjectFile::createObjectFile(buffer.getMemBufferRef());
  if (!object) {
    failure.message = llvm::toString(object.takeError());
    return false;
  }
  llvm::orc::SymbolMap externals;
  std::string missing;
  for (const llvm::object::SymbolRef& symbol : (*object)->symbols()) {
    auto flags = symbol.getFlags();
    auto name = symbol.getName();
    if (!flags || !name) {
      failure.message = llvm::toString(flags ? name.takeError() : flags.takeError());
      return false;
    }
    const bool undefined = (*flags & llvm::object::SymbolRef::SF_Undefined) != 0;
    if (!undefined || name->empty() || *name == "_GLOBAL_OFFSET_TABLE_") continue;
    void* address = *name == "chainfold_yield"    ? reinterpret_cast<void*>(&chainfold_yield)
                    : *name == "chainfold_arrays" ? reinterpret_cast<void*>(&chainfold_arrays)
                                                  : find_in_system_libraries(name->str().c_str());
    if (address != nullptr) {
      externals[scope.getExecutionSession().intern(*name)] = {
          ExecutorAddr::fromPtr(address),
          llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
    } else {
      missing += (missing.empty() ? "" : ", ") + name->str();
    }
  }
  if (!missing.empty()) {
    failure.message = "undefined symbols, in none of libm, libmvec, libc and libgcc: " + missing;
    return false;
  }
  if (externals.empty()) return true;
  if (llvm::Error error = scope.define(llvm::orc::absoluteSymbols(std::move(externals)))) {
    failure.message = llvm::toString(std::move(error));
    return false;
  }
  return true;
}

}  // namespace

/// Libraries are opened by name, and the process is not searched. A host program may have loaded
/// this plugin without libm in its global scope, or define a function called `log` of its own.
void* find_in_system_libraries(const char* name) {
  static const std::array<void*, 4> libraries = {
      dlopen("libm.so.6", RTLD_NOW | RTLD_LOCAL), dlopen("libmvec.so.1", RTLD_NOW | RTLD_LOCAL),
      dlopen("libc.so.6", RTLD_NOW | RTLD_LOCAL), dlopen("libgcc_s.so.1", RTLD_NOW | RTLD_LOCAL)};
  for (void* library : libraries) {
    if (library == nullptr) continue;
    if (void* address = dlsym(library, name)) return address;
  }
  return nullptr;
}

std::unique_ptr<LinkedObject> LinkedObject::link(std::unique_ptr<llvm::MemoryBuffer> object,
                                                 const char* const* symbols, std::size_t count,
                                                 chainfold_cpu_launch* functions,
                                                 Failure& failure) {
  Linker& shared = linker();
  if (!shared.layer) {
    failure.message = shared.error;
    return nullptr;
  }
  ExecutionSession& session = *shared.session;
  llvm::orc::JITDylib& scope =
      session.createBareJITDylib("module" + std::to_string(shared.modules.fetch_add(1)));
  std::unique_ptr<LinkedObject> linked(new LinkedObject(scope));
  if (!define_externals(*object, scope, failure)) return nullptr;
  session_report.clear();
  const auto fail = [&](llvm::Error error) {
    failure.message = session_report + llvm::toString(std::move(error));
    return nullptr;
  };
  if (llvm::Error error = shared.layer->add(scope, std::move(object)))
    return fail(std::move(error));

  llvm::orc::SymbolLookupSet wanted;
  for (std::size_t i = 0; i < count; ++i) wanted.add(session.intern(symbols[i]));
  wanted.removeDuplicates();
  auto found = session.lookup(
      llvm::orc::makeJITDylibSearchOrder(&scope, llvm::orc::JITDylibLookupFlags::MatchAllSymbols),
      std::move(wanted));
  if (!found) return fail(found.takeError());
  for (std::size_t i = 0; i < count; ++i) {
    functions[i] = (*found)[session.intern(symbols[i])].getAddress().toPtr<chainfold_cpu_launch>();
  }
  return linked;
}

LinkedObject::~LinkedObject() {
  // Failing to unmap leaves memory behind, which no caller could mend.
  llvm::consumeError(linker().session->removeJITDylib(scope_));
}

}  // namespace chainfold::runtime::cpu
