// Reads the machine code of compiled kernels, so that tests can hold the compiler to its promises:
// tensor cores in use, wide loads, no spills. Knows sm_75 and later, where an instruction has 16
// bytes and its low 12 bits are the opcode: 9 bits of operation and 3 that choose the operands'
// form.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace chainfold::test {

/// The instructions of one kernel, with the subroutines that lie in its section.
struct KernelCode {
  std::string name;
  std::size_t instructions = 0;             ///< without the padding NOPs
  std::map<unsigned, std::size_t> opcodes;  ///< low 12 bits -> count, NOPs included
  /// (mnemonic, bytes a lane) -> count for LDG, STG, LDL, STL, LDS, STS.
  std::map<std::pair<std::string, int>, std::size_t> accesses;
  /// Accesses of global memory (LDG, STG, LD, ST, RED, ATOMG, LDGSTS, UBLKCP) that stand before the
  /// first ACQBULK, the wait for the kernel before; all of them if there is none.
  std::size_t global_before_wait = 0;
  /// How many loads of global memory follow each other before one of them is waited for, from the
  /// kernel's first instruction to its last: what is under way together, if no jump leads between
  /// them. By the barriers that instructions set and wait for.
  std::vector<int> loads_together;

  /// How many instructions have a mnemonic: one of mnemonics(), in any operand form. Throws
  /// std::invalid_argument for a name that the reader does not know, so a typo is no zero.
  [[nodiscard]] std::size_t count(std::string_view mnemonic) const;
  /// How many accesses move `bytes` a lane: count_wide("LDG", 16) counts LDG.E.128.
  [[nodiscard]] std::size_t count_wide(std::string_view mnemonic, int bytes) const;
};

/// The names that the reader knows, each with the operations (opcode without form) it stands for.
const std::multimap<std::string_view, unsigned>& mnemonics();

/// The kernels of a CUBIN in the order of its sections. Throws std::runtime_error if the bytes are
/// no 64-bit CUBIN or are cut short.
std::vector<KernelCode> read_cubin(std::span<const std::byte> image);

/// The architecture that a CUBIN is for: 90 for sm_90. Throws as read_cubin does.
int cubin_architecture(std::span<const std::byte> image);

}  // namespace chainfold::test
