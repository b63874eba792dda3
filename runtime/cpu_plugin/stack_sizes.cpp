#include "stack_sizes.hpp"

#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/DataExtractor.h>
#include <llvm/Support/MemoryBuffer.h>

#include <algorithm>

namespace chainfold::runtime::cpu {

std::uint64_t stack_bytes_of(const llvm::MemoryBuffer& object) {
  auto file = llvm::object::ObjectFile::createObjectFile(object.getMemBufferRef());
  if (!file) {
    llvm::consumeError(file.takeError());  // the linker reports it
    return 0;
  }
  std::uint64_t most = 0;
  for (const llvm::object::SectionRef& section : (*file)->sections()) {
    llvm::Expected<llvm::StringRef> name = section.getName();
    llvm::Expected<llvm::StringRef> bytes = section.getContents();
    if (name && bytes && *name == ".stack_sizes") {
      // Entries: the function's address, which the linker would fill in, and an ULEB128.
      const llvm::DataExtractor data(*bytes, (*file)->isLittleEndian(),
                                     (*file)->getBytesInAddress());
      llvm::DataExtractor::Cursor at(0);
      while (at && !data.eof(at)) {
        data.getAddress(at);
        most = std::max(most, data.getULEB128(at));
      }
      llvm::consumeError(at.takeError());
    }
    if (!name) llvm::consumeError(name.takeError());
    if (!bytes) llvm::consumeError(bytes.takeError());
  }
  return most;
}

}  // namespace chainfold::runtime::cpu
