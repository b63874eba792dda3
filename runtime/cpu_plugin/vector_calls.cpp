#include "vector_calls.hpp"

#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>
#include <llvm/Support/MathExtras.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "host.hpp"
#include "linker.hpp"
#include "registers.hpp"

namespace chainfold::runtime::cpu {
namespace {

/// A function of the C library, by its name for f64.
struct Function {
  std::string name{};
  llvm::CallInst* call = nullptr;
};

/// Names that emitters declare where LLVM has no intrinsic: chainfold.library.NAME.TYPE[.LANES].
constexpr std::string_view kDeclared = "chainfold.library.";

/// The function that a call is of; none for others.
std::optional<Function> function_of(llvm::Instruction& instruction) {
  auto* call = llvm::dyn_cast<llvm::CallInst>(&instruction);
  if (call == nullptr || call->getCalledFunction() == nullptr) return {};
  switch (call->getIntrinsicID()) {
    case llvm::Intrinsic::exp: return Function{"exp", call};
    case llvm::Intrinsic::log: return Function{"log", call};
    case llvm::Intrinsic::pow: return Function{"pow", call};
    default: break;
  }
  llvm::StringRef name = call->getCalledFunction()->getName();
  if (!name.consume_front(llvm::StringRef(kDeclared.data(), kDeclared.size()))) return {};
  return Function{name.take_until([](char c) { return c == '.'; }).str(), call};
}

/// The name that the x86 vector function ABI gives such a function without a mask.
std::string vector_name(std::string_view scalar, bool is_double, int lanes, std::size_t operands) {
  const int bits = lanes * (is_double ? 64 : 32);
  const char registers = bits == 128 ? 'b' : bits == 256 ? 'd' : 'e';
  return std::string("_ZGV") + registers + 'N' + std::to_string(lanes) +
         std::string(operands, 'v') + '_' + std::string(scalar) + (is_double ? "" : "f");
}

/// Operands that the library's functions leave to slow ones, but whose results are known. Lanes
/// without an element hold such operands: a logarithm of 0, or an exponential of -inf - -inf.
struct Known {
  llvm::Value* is_known;
  llvm::Value* value;
};

/// Those of exp, log or log2 at x.
Known known_values(llvm::IRBuilder<>& at, std::string_view function, llvm::Value* x) {
  llvm::Type* type = x->getType();
  llvm::Constant* zero = llvm::ConstantFP::getZero(type);
  if (function != "exp")
    return {at.CreateFCmpOEQ(x, zero), llvm::ConstantFP::getInfinity(type, /*Negative=*/true)};
  // Exponentials of less are below half of the least number.
  llvm::Constant* least =
      llvm::ConstantFP::get(type, type->getScalarType()->isDoubleTy() ? -746.0 : -104.0);
  return {at.CreateFCmpULT(x, least), at.CreateSelect(at.CreateFCmpUNO(x, x), x, zero)};
}

/// `library`, but for the lanes whose results are known. It is a function of its own, since the
/// caller would keep the known results in memory until the library returns. Where no lane's result
/// is known it only tests and jumps, and needs no frame. Of other functions no results are known.
llvm::FunctionCallee guarded(const Function& what, llvm::FunctionCallee library) {
  if (what.name != "exp" && what.name != "log" && what.name != "log2") return library;
  llvm::CallInst& call = *what.call;
  llvm::Module& module = *call.getModule();
  const std::string name = "guarded." + library.getCallee()->getName().str();
  if (llvm::Function* found = module.getFunction(name)) return found;
  llvm::LLVMContext& context = module.getContext();
  auto* function = llvm::Function::Create(library.getFunctionType(),
                                          llvm::Function::InternalLinkage, name, module);
  target_like(*function, *call.getFunction());
  function->addFnAttr(llvm::Attribute::NoInline);
  auto* entry = llvm::BasicBlock::Create(context, "entry", function);
  auto* some = llvm::BasicBlock::Create(context, "some", function);
  auto* none = llvm::BasicBlock::Create(context, "none", function);
  llvm::Value* x = function->getArg(0);

  llvm::IRBuilder<> at(entry);
  const Known known = known_values(at, what.name, x);
  at.CreateCondBr(at.CreateOrReduce(known.is_known), some, none);

  at.SetInsertPoint(none);
  llvm::CallInst* whole = at.CreateCall(library, x);
  whole->setTailCall();
  at.CreateRet(whole);

  at.SetInsertPoint(some);
  llvm::Value* one = llvm::ConstantFP::get(x->getType(), 1.0);
  llvm::Value* rest = at.CreateCall(library, at.CreateSelect(known.is_known, one, x));
  at.CreateRet(at.CreateSelect(known.is_known, known.value, rest));
  return function;
}

/// Calls the function for each lane by itself, as LLVM does of its intrinsics.
void call_each_lane(const Function& what) {
  llvm::CallInst& call = *what.call;
  llvm::Type* element = call.getType()->getScalarType();
  const std::string name = what.name + (element->isDoubleTy() ? "" : "f");
  const llvm::SmallVector<llvm::Type*> types(call.arg_size(), element);
  const llvm::FunctionCallee function = call.getModule()->getOrInsertFunction(
      name, llvm::FunctionType::get(element, types, /*isVarArg=*/false));
  llvm::IRBuilder<> at(&call);
  const auto one = [&](const auto& operand) {
    llvm::SmallVector<llvm::Value*> arguments;
    for (llvm::Value* value : call.args()) arguments.push_back(operand(value));
    llvm::CallInst* done = at.CreateCall(function, arguments);
    done->setDoesNotAccessMemory();
    done->setDoesNotThrow();
    return done;
  };
  llvm::Value* all = nullptr;
  if (const auto* type = llvm::dyn_cast<llvm::FixedVectorType>(call.getType())) {
    all = llvm::PoisonValue::get(call.getType());
    for (unsigned lane = 0; lane < type->getNumElements(); ++lane) {
      llvm::Value* value =
          one([&](llvm::Value* operand) { return at.CreateExtractElement(operand, lane); });
      all = at.CreateInsertElement(all, value, lane);
    }
  } else {
    all = one([](llvm::Value* operand) { return operand; });
  }
  call.replaceAllUsesWith(all);
  call.eraseFromParent();
}

/// Whether the library has a function of vectors for it, which then stands in its place.
bool call_vectors(const Function& what) {
  llvm::CallInst& call = *what.call;
  auto* type = llvm::dyn_cast<llvm::FixedVectorType>(call.getType());
  if (type == nullptr) return false;
  llvm::Type* element = type->getElementType();
  if (!element->isFloatTy() && !element->isDoubleTy()) return false;
  const int lanes = static_cast<int>(type->getNumElements());
  const int bits = element->isDoubleTy() ? 64 : 32;
  const int count = std::min(lanes, vector_bits(*call.getFunction()) / bits);
  if (count * bits < 128 || !llvm::isPowerOf2_32(static_cast<unsigned>(lanes))) return false;

  const std::string name = vector_name(what.name, element->isDoubleTy(), count, call.arg_size());
  if (find_in_system_libraries(name.c_str()) == nullptr) return false;
  auto* part = llvm::FixedVectorType::get(element, static_cast<unsigned>(count));
  const llvm::SmallVector<llvm::Type*> types(call.arg_size(), part);
  llvm::FunctionCallee function = call.getModule()->getOrInsertFunction(
      name, llvm::FunctionType::get(part, types, /*isVarArg=*/false));
  function = guarded(what, function);
  llvm::IRBuilder<> at(&call);
  llvm::SmallVector<llvm::Value*> parts;
  for (int first = 0; first < lanes; first += count) {
    llvm::SmallVector<llvm::Value*> arguments;
    for (llvm::Value* operand : call.args()) arguments.push_back(slice(at, operand, first, count));
    llvm::CallInst* done = at.CreateCall(function, arguments);
    done->setDoesNotAccessMemory();
    done->setDoesNotThrow();
    parts.push_back(done);
  }
  call.replaceAllUsesWith(concatenate(at, std::move(parts)));
  call.eraseFromParent();
  return true;
}

}  // namespace

void call_vector_functions(llvm::Module& module) {
  llvm::SmallVector<Function> calls;
  for (llvm::Function& function : module) {
    for (llvm::BasicBlock& block : function) {
      for (llvm::Instruction& instruction : block) {
        if (std::optional<Function> found = function_of(instruction))
          calls.push_back(*std::move(found));
      }
    }
  }
  for (const Function& what : calls) {
    const bool intrinsic = llvm::isa<llvm::IntrinsicInst>(what.call);
    if (!call_vectors(what) && !intrinsic) call_each_lane(what);
  }
}

bool has_vector_functions() {
  return find_in_system_libraries(vector_name("exp", true, 2, 1).c_str()) != nullptr;
}

}  // namespace chainfold::runtime::cpu
