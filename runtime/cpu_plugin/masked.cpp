#include "masked.hpp"

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>

#include <optional>
#include <string>
#include <vector>

#include "host.hpp"
#include "registers.hpp"

namespace chainfold::runtime::cpu {
namespace {

constexpr int kWordBytes = 4;
/// Bits of a register of AVX.
constexpr int kAvxBits = 256;

/// A masked load of whole words of elements, and which of the elements it touches.
struct Masked {
  llvm::IntrinsicInst* load;
  int bytes;  ///< an element
  std::vector<bool> elements;
};

/// Nothing where the instruction is no such load under a known mask with zeros elsewhere.
std::optional<Masked> masked_load(llvm::Instruction& instruction) {
  auto* load = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
  if (load == nullptr || load->getIntrinsicID() != llvm::Intrinsic::masked_load)
    return std::nullopt;
  const auto* type = llvm::cast<llvm::FixedVectorType>(load->getType());
  const auto bits = static_cast<int>(type->getScalarSizeInBits());
  const auto count = static_cast<int>(type->getNumElements());
  if ((bits != 8 && bits != 16) || count * bits % (8 * kWordBytes) != 0) return std::nullopt;
  const auto* mask = llvm::dyn_cast<llvm::Constant>(load->getArgOperand(2));
  const auto* others = llvm::dyn_cast<llvm::Constant>(load->getArgOperand(3));
  if (mask == nullptr || others == nullptr || !others->isNullValue()) return std::nullopt;
  Masked masked{.load = load, .bytes = bits / 8, .elements = {}};
  for (int i = 0; i < count; ++i) {
    const auto* bit = mask->getAggregateElement(static_cast<unsigned>(i));
    masked.elements.push_back(bit != nullptr && bit->isOneValue());
  }
  return masked;
}

/// The elements of word `word` that are loaded, in their places; the others are zeros.
llvm::Value* load_part(llvm::IRBuilder<>& at, const Masked& masked, int word) {
  llvm::Value* pointer = masked.load->getArgOperand(0);
  llvm::Type* element = at.getIntNTy(static_cast<unsigned>(8 * masked.bytes));
  const int per_word = kWordBytes / masked.bytes;
  llvm::Value* all = at.getInt32(0);
  for (int e = 0; e < per_word; ++e) {
    const int index = word * per_word + e;
    if (!masked.elements[static_cast<std::size_t>(index)]) continue;
    llvm::Value* from = at.CreateConstGEP1_32(element, pointer, static_cast<unsigned>(index));
    llvm::Value* one = at.CreateAlignedLoad(element, from, llvm::Align(1));
    llvm::Value* wide = at.CreateZExt(one, at.getInt32Ty());
    all = at.CreateOr(all, at.CreateShl(wide, static_cast<std::uint64_t>(8 * masked.bytes * e)));
  }
  return all;
}

void split(const Masked& masked) {
  llvm::IRBuilder<> at(masked.load);
  const int per_word = kWordBytes / masked.bytes;
  const int words = static_cast<int>(masked.elements.size()) / per_word;
  auto* type = llvm::FixedVectorType::get(at.getInt32Ty(), static_cast<unsigned>(words));
  llvm::SmallVector<llvm::Constant*> whole;
  llvm::SmallVector<int> parts;
  for (int word = 0; word < words; ++word) {
    int loaded = 0;
    for (int e = 0; e < per_word; ++e)
      loaded += masked.elements[static_cast<std::size_t>(word * per_word + e)] ? 1 : 0;
    whole.push_back(at.getInt1(loaded == per_word));
    if (loaded > 0 && loaded < per_word) parts.push_back(word);
  }
  const bool none = llvm::all_of(whole, [](llvm::Constant* bit) { return bit->isNullValue(); });
  llvm::Value* zeros = llvm::Constant::getNullValue(type);
  llvm::Value* all =
      none ? zeros
           : at.CreateMaskedLoad(type, masked.load->getArgOperand(0), llvm::Align(masked.bytes),
                                 llvm::ConstantVector::get(whole), zeros);
  for (const int word : parts)
    all =
        at.CreateInsertElement(all, load_part(at, masked, word), static_cast<std::uint64_t>(word));
  masked.load->replaceAllUsesWith(at.CreateBitCast(all, masked.load->getType()));
  masked.load->eraseFromParent();
}

/// A masked load or store of elements of a word or two under a mask that is no constant.
bool has_unknown_mask(const llvm::IntrinsicInst& access) {
  const llvm::Intrinsic::ID id = access.getIntrinsicID();
  if (id != llvm::Intrinsic::masked_load && id != llvm::Intrinsic::masked_store) return false;
  const bool loads = id == llvm::Intrinsic::masked_load;
  const auto* type = llvm::cast<llvm::FixedVectorType>(loads ? access.getType()
                                                             : access.getArgOperand(0)->getType());
  const auto bits = type->getScalarSizeInBits();
  const bool whole = type->getNumElements() * bits % kAvxBits == 0;
  return (bits == 32 || bits == 64) && whole &&
         !llvm::isa<llvm::Constant>(access.getArgOperand(loads ? 2 : 3));
}

/// The lanes of a mask for one register's elements of so many bits, as a mask that LLVM does not
/// know.
llvm::Value* hidden_mask(llvm::IRBuilder<>& at, llvm::Value* mask, int first, int lanes, int bits) {
  auto* type = llvm::FixedVectorType::get(at.getIntNTy(static_cast<unsigned>(bits)),
                                          static_cast<unsigned>(lanes));
  llvm::Value* words = at.CreateSExt(slice(at, mask, first, lanes), type);
  auto* same = llvm::InlineAsm::get(llvm::FunctionType::get(type, {type}, false), "", "=x,0",
                                    /*hasSideEffects=*/false);
  return at.CreateICmpSLT(at.CreateCall(same, {words}), llvm::Constant::getNullValue(type));
}

void split_by_registers(llvm::IntrinsicInst& access) {
  llvm::IRBuilder<> at(&access);
  const bool loads = access.getIntrinsicID() == llvm::Intrinsic::masked_load;
  llvm::Value* value = loads ? nullptr : access.getArgOperand(0);
  llvm::Value* pointer = access.getArgOperand(loads ? 0 : 1);
  const llvm::Align align =
      llvm::cast<llvm::ConstantInt>(access.getArgOperand(loads ? 1 : 2))->getAlignValue();
  llvm::Value* mask = access.getArgOperand(loads ? 2 : 3);
  auto* type = llvm::cast<llvm::FixedVectorType>(loads ? access.getType() : value->getType());
  llvm::Type* element = type->getElementType();
  const auto bits = static_cast<int>(type->getScalarSizeInBits());
  const int lanes = kAvxBits / bits;
  auto* one = llvm::FixedVectorType::get(element, static_cast<unsigned>(lanes));
  const llvm::Align each = std::min(align, llvm::Align(static_cast<std::uint64_t>(bits / 8)));
  llvm::SmallVector<llvm::Value*> parts;
  for (int first = 0; first < static_cast<int>(type->getNumElements()); first += lanes) {
    llvm::Value* place = at.CreateConstGEP1_32(element, pointer, static_cast<unsigned>(first));
    llvm::Value* bit = hidden_mask(at, mask, first, lanes, bits);
    if (loads) {
      parts.push_back(at.CreateMaskedLoad(one, place, each, bit,
                                          slice(at, access.getArgOperand(3), first, lanes)));
    } else {
      at.CreateMaskedStore(slice(at, value, first, lanes), place, each, bit);
    }
  }
  if (loads) access.replaceAllUsesWith(concatenate(at, std::move(parts)));
  access.eraseFromParent();
}

/// A masked load of elements of a byte or two with zeros elsewhere, under a mask that is no
/// constant.
bool is_slow(const llvm::IntrinsicInst& access) {
  if (access.getIntrinsicID() != llvm::Intrinsic::masked_load) return false;
  const auto bits = access.getType()->getScalarSizeInBits();
  const auto* others = llvm::dyn_cast<llvm::Constant>(access.getArgOperand(3));
  return (bits == 8 || bits == 16) && others != nullptr && others->isNullValue() &&
         !llvm::isa<llvm::Constant>(access.getArgOperand(2));
}

/// A function that is such a load, of a pointer and the bits of a mask.
llvm::Function& function_of(llvm::Module& module, const llvm::IntrinsicInst& load) {
  auto* type = llvm::cast<llvm::FixedVectorType>(load.getType());
  const unsigned lanes = type->getNumElements();
  const std::string name =
      "masked." + std::to_string(lanes) + "x" + std::to_string(type->getScalarSizeInBits());
  if (llvm::Function* found = module.getFunction(name)) return *found;
  llvm::LLVMContext& context = module.getContext();
  llvm::Type* bits = llvm::IntegerType::get(context, lanes);
  llvm::Type* pointer = llvm::PointerType::getUnqual(context);
  auto* function = llvm::Function::Create(llvm::FunctionType::get(type, {pointer, bits}, false),
                                          llvm::Function::InternalLinkage, name, module);
  const llvm::AttributeSet attributes = load.getFunction()->getAttributes().getFnAttrs();
  function->addFnAttrs(llvm::AttrBuilder(context, attributes));
  function->addFnAttr(llvm::Attribute::NoInline);
  llvm::IRBuilder<> at(llvm::BasicBlock::Create(context, "entry", function));
  llvm::Value* mask = at.CreateBitCast(
      function->getArg(1), llvm::FixedVectorType::get(llvm::Type::getInt1Ty(context), lanes));
  at.CreateRet(at.CreateMaskedLoad(type, function->getArg(0), llvm::Align(1), mask,
                                   llvm::Constant::getNullValue(type)));
  return *function;
}

void call_instead(llvm::IntrinsicInst& load) {
  llvm::IRBuilder<> at(&load);
  llvm::Function& function = function_of(*load.getModule(), load);
  llvm::Value* bits = at.CreateBitCast(load.getArgOperand(2), function.getArg(1)->getType());
  load.replaceAllUsesWith(at.CreateCall(&function, {load.getArgOperand(0), bits}));
  load.eraseFromParent();
}

}  // namespace

void split_masked(llvm::Module& module) {
  if (!host().has("avx") || host().has("avx512bw")) return;
  std::vector<Masked> loads;
  std::vector<llvm::IntrinsicInst*> unknown, slow;
  for (llvm::Function& function : module) {
    for (llvm::BasicBlock& block : function) {
      for (llvm::Instruction& instruction : block) {
        auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
        if (std::optional<Masked> masked = masked_load(instruction)) {
          loads.push_back(*std::move(masked));
        } else if (intrinsic != nullptr && has_unknown_mask(*intrinsic)) {
          unknown.push_back(intrinsic);
        } else if (intrinsic != nullptr && is_slow(*intrinsic)) {
          slow.push_back(intrinsic);
        }
      }
    }
  }
  for (const Masked& masked : loads) split(masked);
  for (llvm::IntrinsicInst* access : unknown) split_by_registers(*access);
  for (llvm::IntrinsicInst* load : slow) call_instead(*load);
}

}  // namespace chainfold::runtime::cpu
