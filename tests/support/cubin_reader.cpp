#include "chainfold/tests/support/cubin_reader.hpp"

#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <set>
#include <stdexcept>

namespace chainfold::test {
namespace {

constexpr std::uint16_t kMachineCuda = 190;
constexpr unsigned char kEntryFlag = 0x10;  // of st_other: the symbol is a kernel
constexpr std::size_t kInstructionBytes = 16;
constexpr unsigned kOperationMask = 0x1ff;
constexpr unsigned kNop = 0x118, kAcqbulk = 0x02e;

/// A bounds-checked view of the file.
class Elf {
 public:
  explicit Elf(std::span<const std::byte> image) : image_(image) {
    header_ = read<Elf64_Ehdr>(0);
    if (std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0 ||
        header_.e_ident[EI_CLASS] != ELFCLASS64 || header_.e_machine != kMachineCuda) {
      throw std::runtime_error("not a 64-bit CUBIN");
    }
    for (unsigned i = 0; i < header_.e_shnum; ++i) {
      sections_.push_back(read<Elf64_Shdr>(header_.e_shoff + i * sizeof(Elf64_Shdr)));
    }
    if (header_.e_shstrndx >= sections_.size()) throw std::runtime_error("a CUBIN without names");
  }

  template <class T>
  [[nodiscard]] T read(std::size_t offset) const {
    T value;
    std::memcpy(&value, slice(offset, sizeof(T)).data(), sizeof(T));
    return value;
  }
  [[nodiscard]] std::span<const std::byte> slice(std::size_t offset, std::size_t size) const {
    if (offset > image_.size() || size > image_.size() - offset) {
      throw std::runtime_error(
          fmt::format("a CUBIN cut short: {} bytes at {} of {}", size, offset, image_.size()));
    }
    return image_.subspan(offset, size);
  }
  [[nodiscard]] std::string text(const Elf64_Shdr& table, std::size_t at) const {
    const auto bytes = slice(table.sh_offset, table.sh_size);
    std::string result;
    for (; at < bytes.size() && bytes[at] != std::byte{0}; ++at) {
      result += static_cast<char>(bytes[at]);
    }
    return result;
  }
  [[nodiscard]] std::string name(const Elf64_Shdr& section) const {
    return text(sections_[header_.e_shstrndx], section.sh_name);
  }
  [[nodiscard]] const std::vector<Elf64_Shdr>& sections() const { return sections_; }
  [[nodiscard]] const Elf64_Ehdr& header() const { return header_; }

 private:
  std::span<const std::byte> image_;
  Elf64_Ehdr header_{};
  std::vector<Elf64_Shdr> sections_;
};

/// The indices of the sections that hold kernels; other functions have sections of their own too.
std::set<std::size_t> kernel_sections(const Elf& elf) {
  std::set<std::size_t> found;
  for (const Elf64_Shdr& section : elf.sections()) {
    if (section.sh_type != SHT_SYMTAB) continue;
    for (std::size_t at = 0; at + sizeof(Elf64_Sym) <= section.sh_size; at += sizeof(Elf64_Sym)) {
      const auto symbol = elf.read<Elf64_Sym>(section.sh_offset + at);
      if ((symbol.st_other & kEntryFlag) != 0) found.insert(symbol.st_shndx);
    }
  }
  return found;
}

/// Bytes a lane of a load or store. Bits 73 to 75 hold the type: 0 and 1 are 8 bits wide, 2 and 3
/// 16, then 32, 64 and 128; accesses of 256 bits have operations of their own.
int access_bytes(unsigned operation, std::uint64_t high) {
  if (operation == 0x17e || operation == 0x17f) return 32;
  constexpr int kBytes[] = {1, 1, 2, 2, 4, 8, 16, 0};
  return kBytes[(high >> 9) & 7];
}

const char* access_name(unsigned operation) {
  switch (operation) {
    case 0x181:
    case 0x17e: return "LDG";
    case 0x186:
    case 0x17f: return "STG";
    case 0x183: return "LDL";
    case 0x187: return "STL";
    case 0x184: return "LDS";
    case 0x188: return "STS";
    default: return nullptr;
  }
}

bool touches_global(unsigned operation) {
  constexpr std::string_view kTouching[] = {"LDG", "STG",   "LD",     "ST",
                                            "RED", "ATOMG", "LDGSTS", "UBLKCP"};
  return std::any_of(mnemonics().begin(), mnemonics().end(), [&](const auto& row) {
    return row.second == operation &&
           std::ranges::find(kTouching, row.first) != std::end(kTouching);
  });
}

/// What an instruction's upper half says of the six barriers that variable latencies have: the one
/// that its result sets (kNoBarrier: none), and those that it waits for, a bit each.
constexpr unsigned kNoBarrier = 7;
unsigned sets_barrier(std::uint64_t high) { return static_cast<unsigned>(high >> 46) & 7; }
unsigned waits_for(std::uint64_t high) { return static_cast<unsigned>(high >> 52) & 63; }

KernelCode read_kernel(const Elf& elf, const Elf64_Shdr& section, std::string name) {
  KernelCode kernel;
  unsigned under_way = 0;  // barriers of loads since the last group ended
  kernel.name = std::move(name);
  bool waited = false;
  for (std::size_t at = 0; at + kInstructionBytes <= section.sh_size; at += kInstructionBytes) {
    const auto low = elf.read<std::uint64_t>(section.sh_offset + at);
    const auto high = elf.read<std::uint64_t>(section.sh_offset + at + 8);
    const auto opcode = static_cast<unsigned>(low & 0xfff);
    const unsigned operation = opcode & kOperationMask;
    ++kernel.opcodes[opcode];
    waited = waited || operation == kAcqbulk;
    if (!waited && touches_global(operation)) ++kernel.global_before_wait;
    if (operation != kNop) ++kernel.instructions;
    if ((waits_for(high) & under_way) != 0) under_way = 0;
    if (const char* access = access_name(operation)) {
      ++kernel.accesses[{access, access_bytes(operation, high)}];
      if (access != std::string_view("LDG")) continue;
      if (under_way == 0) kernel.loads_together.push_back(0);
      ++kernel.loads_together.back();
      if (sets_barrier(high) != kNoBarrier) under_way |= 1u << sets_barrier(high);
    }
  }
  return kernel;
}

}  // namespace

const std::multimap<std::string_view, unsigned>& mnemonics() {
  // Checked against NVIDIA's disassembler for sm_75, 80, 86, 89, 90, 100 and 120.
  static const std::multimap<std::string_view, unsigned> kTable = {
      {"HMMA", 0x03c},  {"IMMA", 0x037},       {"DMMA", 0x03f},   {"BMMA", 0x03d},
      {"QMMA", 0x07a},  {"LDG", 0x181},        {"LDG", 0x17e},    {"STG", 0x186},
      {"STG", 0x17f},   {"LDL", 0x183},        {"STL", 0x187},    {"LDS", 0x184},
      {"STS", 0x188},   {"LD", 0x180},         {"ST", 0x185},     {"LDGSTS", 0x1ae},
      {"LDSM", 0x03b},  {"UBLKCP", 0x1ba},     {"SYNCS", 0x1b2},  {"SHFL", 0x189},
      {"VOTE", 0x006},  {"BAR", 0x11d},        {"MEMBAR", 0x192}, {"RED", 0x18e},
      {"RED", 0x1a6},   {"ATOMG", 0x1a3},      {"ATOMG", 0x1a8},  {"ATOMG", 0x1a9},
      {"ATOMS", 0x18d}, {"FADD", 0x021},       {"FMUL", 0x020},   {"FFMA", 0x023},
      {"DADD", 0x029},  {"DMUL", 0x028},       {"DFMA", 0x02b},   {"MUFU", 0x108},
      {"CALL", 0x143},  {"CALL", 0x144},       {"BRA", 0x147},    {"EXIT", 0x14d},
      {"NOP", kNop},    {"ACQBULK", kAcqbulk},
  };
  return kTable;
}

std::size_t KernelCode::count(std::string_view mnemonic) const {
  const auto [first, last] = mnemonics().equal_range(mnemonic);
  if (first == last) throw std::invalid_argument(fmt::format("no mnemonic {}", mnemonic));
  std::size_t total = 0;
  for (const auto& [opcode, times] : opcodes) {
    for (auto it = first; it != last; ++it) {
      if (it->second == (opcode & kOperationMask)) total += times;
    }
  }
  return total;
}

std::size_t KernelCode::count_wide(std::string_view mnemonic, int bytes) const {
  const auto it = accesses.find({std::string(mnemonic), bytes});
  return it == accesses.end() ? 0 : it->second;
}

std::vector<KernelCode> read_cubin(std::span<const std::byte> image) {
  const Elf elf(image);
  const std::set<std::size_t> kernels = kernel_sections(elf);
  constexpr std::string_view kPrefix = ".text.";
  std::vector<KernelCode> result;
  for (std::size_t i = 0; i < elf.sections().size(); ++i) {
    const Elf64_Shdr& section = elf.sections()[i];
    const std::string name = elf.name(section);
    if (!kernels.contains(i) || !name.starts_with(kPrefix)) continue;
    result.push_back(read_kernel(elf, section, name.substr(kPrefix.size())));
  }
  return result;
}

int cubin_architecture(std::span<const std::byte> image) {
  const Elf64_Ehdr header = Elf(image).header();
  // From version 8 of the format on the architecture stands in the second byte of the flags.
  const bool new_format = header.e_ident[EI_ABIVERSION] >= 8;
  return static_cast<int>((header.e_flags >> (new_format ? 8 : 0)) & 0xff);
}

}  // namespace chainfold::test
