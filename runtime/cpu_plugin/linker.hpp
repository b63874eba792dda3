// Object files into executable memory.
#pragma once

#include <cstddef>
#include <memory>

#include "chainfold/runtime/jit/cpu_plugin_abi.h"
#include "compiler.hpp"

namespace llvm::orc {
class JITDylib;
}

namespace chainfold::runtime::cpu {

/// A function of libm, libmvec, libc or libgcc; null where none of them, as far as the machine has
/// them, defines it. Thread-safe.
void* find_in_system_libraries(const char* name);

/// A linked object: its own symbol scope, so equal names in two modules never meet. Its code lives
/// as long as it does.
class LinkedObject {
 public:
  /// Links `object` and looks `count` symbols up; null, with `failure` filled, when that fails.
  /// Symbols that the object leaves undefined come from find_in_system_libraries(), but for
  /// chainfold_yield (host.hpp). Thread-safe.
  static std::unique_ptr<LinkedObject> link(std::unique_ptr<llvm::MemoryBuffer> object,
                                            const char* const* symbols, std::size_t count,
                                            chainfold_cpu_launch* functions, Failure& failure);
  ~LinkedObject();
  LinkedObject(const LinkedObject&) = delete;
  LinkedObject& operator=(const LinkedObject&) = delete;

 private:
  explicit LinkedObject(llvm::orc::JITDylib& scope) : scope_(scope) {}
  llvm::orc::JITDylib& scope_;
};

}  // namespace chainfold::runtime::cpu
