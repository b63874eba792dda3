#include "host.hpp"

#include <llvm/ADT/StringMap.h>
#include <llvm/IR/Function.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/CodeGen.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Target/TargetOptions.h>
#include <llvm/TargetParser/Host.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string_view>
#include <thread>

namespace chainfold::runtime::cpu {
namespace {

/// LLVM's name for the width of the vectors that it is to prefer.
constexpr const char* kVectorBits = "prefer-vector-width";

using FeatureMap = std::map<std::string, bool, std::less<>>;

std::int32_t widest_useful_vector(std::string_view cpu, const FeatureMap& features) {
  const auto has = [&](std::string_view name) {
    const auto it = features.find(name);
    return it != features.end() && it->second;
  };
  // These lower their clock under 512-bit instructions by more than the width gains.
  constexpr std::array<std::string_view, 4> kThrottling = {"skylake-avx512", "cascadelake",
                                                           "cooperlake", "cannonlake"};
  const bool throttles =
      std::find(kThrottling.begin(), kThrottling.end(), cpu) != kThrottling.end();
  if (has("avx512f") && has("avx512vl") && has("avx512bw") && has("avx512dq") && !throttles) {
    return 512;
  }
  return has("avx2") ? 256 : 128;
}

/// CHAINFOLD_VECTOR_BITS: 512, 256 or 128, which libchainfold checks; 0: it is not set.
int chosen_bits() {
  const char* chosen = std::getenv("CHAINFOLD_VECTOR_BITS");
  return chosen == nullptr ? 0 : std::atoi(chosen);
}

/// Turns off features that need more bits than these. LLVM turns on what a feature needs, so no
/// feature may be left that needs one of them.
void leave_out(FeatureMap& features, int bits) {
  for (auto& [name, present] : features) {
    const bool wide = bits < 512 && (name.starts_with("avx512") || name.starts_with("avx10"));
    const bool vex = bits < 256 && (name.starts_with("avx") || name == "f16c" || name == "fma" ||
                                    name == "fma4" || name == "xop" || name.starts_with("vaes") ||
                                    name.starts_with("vpclmul") || name == "sha512" ||
                                    name == "sm3" || name == "sm4");
    if (wide || vex) present = false;
  }
}

Host detect_host() {
  Host h;
  h.triple = llvm::sys::getProcessTriple();
  h.cpu = llvm::sys::getHostCPUName().str();
  FeatureMap features;
  for (const auto& feature : llvm::sys::getHostCPUFeatures()) {
    features.emplace(feature.getKey().str(), feature.getValue());
  }
  // Programs compute with halves as floats. With instructions for halves LLVM makes vectors of
  // halves of the converted floats, and it has no non-temporal stores for these.
  if (const auto halves = features.find("avx512fp16"); halves != features.end())
    halves->second = false;
  if (const int bits = chosen_bits(); bits > 0) leave_out(features, bits);
  for (const auto& [name, present] : features) {
    if (!h.features.empty()) h.features += ',';
    h.features += (present ? '+' : '-') + name;
  }
  h.vector_bits = widest_useful_vector(h.cpu, features);
  h.multiplies_apart = std::string_view(h.cpu).starts_with("znver");
  h.half_units = h.cpu == "znver4" && h.vector_bits == 512;
  // Processors with vectors of this width issue shuffles by a pattern in a register as often as any
  // other. LLVM then takes one such instruction where it would take two others.
  if (h.vector_bits == 512)
    h.features += ",+fast-variable-crosslane-shuffle,+fast-variable-perlane-shuffle";
  return h;
}

}  // namespace

bool Host::has(std::string_view feature) const {
  return ("," + features + ",").find(",+" + std::string(feature) + ",") != std::string::npos;
}

const Host& host() {
  static const Host detected = detect_host();
  return detected;
}

int vector_bits(const llvm::Function& function) {
  int bits = 0;
  function.getFnAttribute(kVectorBits).getValueAsString().getAsInteger(10, bits);
  return bits;
}

void target_function(llvm::Function& function) {
  const bool half = host().half_units && function.hasFnAttribute("chainfold-half-vectors");
  function.addFnAttr("target-cpu", host().cpu);
  function.addFnAttr("target-features", host().features);
  function.addFnAttr(kVectorBits,
                     std::to_string(half ? host().vector_bits / 2 : host().vector_bits));
  // Without it LLVM assumes that registers of every width are wanted.
  if (half) function.addFnAttr("min-legal-vector-width", "0");
  // Otherwise LLVM finds too late that it cannot align the stack for vectors, and spilled vectors
  // cross lines of the cache (docs/decisions/0023-below-llvm-ir.md).
  function.addFnAttr("frame-pointer", "all");
  function.addFnAttr(llvm::Attribute::NoUnwind);  // and so no unwind tables to register
}

void target_like(llvm::Function& function, const llvm::Function& like) {
  for (const char* attribute :
       {"target-cpu", "target-features", kVectorBits, "min-legal-vector-width"}) {
    if (like.hasFnAttribute(attribute)) function.addFnAttr(like.getFnAttribute(attribute));
  }
  function.addFnAttr(llvm::Attribute::NoUnwind);
}

std::unique_ptr<llvm::TargetMachine> make_target_machine(std::string& error) {
  static std::once_flag registered;
  std::call_once(registered, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
  });
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(host().triple, error);
  if (target == nullptr) return nullptr;
  llvm::TargetOptions options;
  // Contraction is explicit in the IR (llvm.fma): every executor must round alike.
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  options.EmitStackSizeSection = true;  // stack_bytes_of() reads it
  std::unique_ptr<llvm::TargetMachine> machine(target->createTargetMachine(
      host().triple, host().cpu, host().features, options, llvm::Reloc::PIC_,
      llvm::CodeModel::Small, llvm::CodeGenOptLevel::Aggressive, /*JIT=*/true));
  if (!machine) error = "LLVM has no target machine for " + host().triple;
  return machine;
}

extern "C" void* chainfold_arrays() {
  // Allocated by the first block of a thread that asks for it.
  alignas(64) static thread_local std::byte arrays[CHAINFOLD_CPU_ARRAY_BYTES];
  return arrays;
}

extern "C" void chainfold_yield(std::int32_t polls) {
  constexpr std::int32_t kSpins = 64;  // about as long as a tile takes
  if (polls < 0 || polls >= kSpins) {
    std::this_thread::yield();
    return;
  }
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace chainfold::runtime::cpu
