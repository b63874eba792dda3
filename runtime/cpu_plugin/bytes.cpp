#include "bytes.hpp"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/PatternMatch.h>

#include <array>
#include <optional>
#include <utility>

#include "host.hpp"
#include "registers.hpp"

namespace chainfold::runtime::cpu {
namespace {

constexpr int kWordBytes = 4;

/// A vector of words, as its bytes.
struct Words {
  llvm::Value* bytes = nullptr;
  bool is_signed = false;
};

/// One byte of each word of a vector of bytes, in 32 bits.
struct Byte {
  Words of;
  int index = 0;
};

std::optional<Byte> byte_of(llvm::Value* value) {
  auto* extended = llvm::dyn_cast<llvm::CastInst>(value);
  if (extended == nullptr || !extended->hasOneUse()) return std::nullopt;
  const bool is_signed = extended->getOpcode() == llvm::Instruction::SExt;
  if (!is_signed && extended->getOpcode() != llvm::Instruction::ZExt) return std::nullopt;
  auto* picked = llvm::dyn_cast<llvm::ShuffleVectorInst>(extended->getOperand(0));
  if (picked == nullptr || !picked->getType()->getElementType()->isIntegerTy(8))
    return std::nullopt;
  auto* bytes = picked->getOperand(0);
  const llvm::ArrayRef<int> lanes = picked->getShuffleMask();
  const auto count =
      static_cast<int>(llvm::cast<llvm::FixedVectorType>(bytes->getType())->getNumElements());
  if (static_cast<int>(lanes.size()) * kWordBytes != count) return std::nullopt;
  const int index = lanes[0];
  if (index < 0 || index >= kWordBytes) return std::nullopt;
  for (int lane = 0; lane < static_cast<int>(lanes.size()); ++lane)
    if (lanes[static_cast<std::size_t>(lane)] != kWordBytes * lane + index) return std::nullopt;
  return Byte{.of = {.bytes = bytes, .is_signed = is_signed}, .index = index};
}

/// The words whose four bytes `add` sums, with two additions that only it uses. Nothing for others.
std::optional<Words> words_of(llvm::Instruction& add) {
  using llvm::PatternMatch::m_Add;
  using llvm::PatternMatch::m_OneUse;
  using llvm::PatternMatch::m_Value;
  const auto* type = llvm::dyn_cast<llvm::FixedVectorType>(add.getType());
  if (type == nullptr || !type->getElementType()->isIntegerTy(32)) return std::nullopt;
  std::array<llvm::Value*, kWordBytes> leaves{};
  if (!llvm::PatternMatch::match(&add,
                                 m_Add(m_OneUse(m_Add(m_Value(leaves[0]), m_Value(leaves[1]))),
                                       m_OneUse(m_Add(m_Value(leaves[2]), m_Value(leaves[3]))))))
    return std::nullopt;
  std::optional<Words> words;
  unsigned seen = 0;
  for (llvm::Value* leaf : leaves) {
    const std::optional<Byte> byte = byte_of(leaf);
    if (!byte) return std::nullopt;
    if (words && (words->bytes != byte->of.bytes || words->is_signed != byte->of.is_signed))
      return std::nullopt;
    words = byte->of;
    seen |= 1U << byte->index;
  }
  return seen == (1U << kWordBytes) - 1 ? words : std::nullopt;
}

class Rewriter {
 public:
  explicit Rewriter(const llvm::Function& function) {
    const bool registers = vector_bits(function) == kRegisterBits;
    if (registers && host().has("avx512vnni")) {
      how_ = How::products_and_sum;
    } else if (registers) {
      how_ = How::products;
    } else if (host().has("avx2")) {
      how_ = How::products;
      bits_ = 256;
    }
  }

  void rewrite(llvm::BasicBlock& block) {
    if (how_ == How::none) return;
    sums_.clear();
    for (llvm::Instruction& instruction : llvm::make_early_inc_range(block)) {
      if (const std::optional<Words> words = words_of(instruction)) {
        sum(instruction, *words);
      } else if (how_ == How::products_and_sum &&
                 instruction.getOpcode() == llvm::Instruction::Add) {
        add(instruction);
      }
    }
  }

 private:
  enum class How : std::uint8_t { none, products, products_and_sum };

  /// The sums of words' bytes, of no more than these so far.
  struct Sum {
    Words words;
    llvm::SmallVector<llvm::Value*> parts;  // a register each
  };

  void sum(llvm::Instruction& add, const Words& words) {
    const auto* type = llvm::cast<llvm::FixedVectorType>(words.bytes->getType());
    const auto bits = static_cast<int>(8 * type->getNumElements());
    if (bits % bits_ != 0 || !llvm::isPowerOf2_32(static_cast<unsigned>(bits / bits_))) return;
    llvm::IRBuilder<> at(&add);
    llvm::SmallVector<llvm::Value*> none(
        static_cast<std::size_t>(bits / bits_),
        llvm::Constant::getNullValue(llvm::FixedVectorType::get(at.getInt32Ty(), bits_ / 32)));
    Sum sum{.words = words, .parts = products(at, words, none)};
    llvm::Value* all = concatenate(at, sum.parts);
    add.replaceAllUsesWith(all);
    add.eraseFromParent();
    sums_[all] = std::move(sum);
  }

  /// One of two operands that is the sum of some words alone starts from the other one instead.
  void add(llvm::Instruction& add) {
    for (unsigned i = 0; i < 2; ++i) {
      const auto found = sums_.find(add.getOperand(i));
      if (found == sums_.end() || !add.getOperand(i)->hasOneUse()) continue;
      const Words words = found->second.words;
      llvm::IRBuilder<> at(&add);
      llvm::Value* before = add.getOperand(1 - i);
      llvm::SmallVector<llvm::Value*> parts;
      const auto other = sums_.find(before);
      if (other != sums_.end()) {
        parts = other->second.parts;
      } else {
        const auto count = static_cast<int>(found->second.parts.size());
        for (int part = 0; part < count; ++part)
          parts.push_back(slice(at, before, part * bits_ / 32, bits_ / 32));
      }
      llvm::Value* all = concatenate(at, products(at, words, parts));
      add.replaceAllUsesWith(all);
      add.eraseFromParent();
      return;
    }
  }

  /// Register by register: before[i] and the sums of its words' bytes.
  llvm::SmallVector<llvm::Value*> products(llvm::IRBuilder<>& at, const Words& words,
                                           const llvm::SmallVector<llvm::Value*>& before) {
    llvm::SmallVector<llvm::Value*> parts;
    const int lanes = bits_ / 8;
    for (int part = 0; part < static_cast<int>(before.size()); ++part) {
      llvm::Value* bytes = slice(at, words.bytes, part * lanes, lanes);
      llvm::Value* ones = llvm::ConstantInt::get(bytes->getType(), 1);
      // The first operand's bytes have no sign, the second one's have.
      llvm::Value* left = words.is_signed ? ones : bytes;
      llvm::Value* right = words.is_signed ? bytes : ones;
      parts.push_back(product(at, before[static_cast<std::size_t>(part)], left, right));
    }
    return parts;
  }

  /// In registers: `before`, which is none but for products_and_sum, and the bytes' sums.
  llvm::Value* product(llvm::IRBuilder<>& at, llvm::Value* before, llvm::Value* left,
                       llvm::Value* right) {
    auto* type = llvm::cast<llvm::FixedVectorType>(before->getType());
    if (how_ == How::products_and_sum) {
      return at.CreateIntrinsic(
          llvm::Intrinsic::x86_avx512_vpdpbusd_512, {},
          {before, at.CreateBitCast(left, type), at.CreateBitCast(right, type)});
    }
    const bool wide = bits_ == kRegisterBits;
    // Two products of a byte and one fit 16 bits.
    llvm::Value* pairs = at.CreateIntrinsic(
        wide ? llvm::Intrinsic::x86_avx512_pmaddubs_w_512 : llvm::Intrinsic::x86_avx2_pmadd_ub_sw,
        {}, {left, right});
    llvm::Value* ones = llvm::ConstantInt::get(pairs->getType(), 1);
    return at.CreateIntrinsic(
        wide ? llvm::Intrinsic::x86_avx512_pmaddw_d_512 : llvm::Intrinsic::x86_avx2_pmadd_wd, {},
        {pairs, ones});
  }

  How how_ = How::none;
  int bits_ = kRegisterBits;
  llvm::DenseMap<llvm::Value*, Sum> sums_;  // of the block
};

}  // namespace

void sum_bytes(llvm::Module& module) {
  for (llvm::Function& function : module) {
    Rewriter rewriter(function);
    for (llvm::BasicBlock& block : function) rewriter.rewrite(block);
  }
}

}  // namespace chainfold::runtime::cpu
