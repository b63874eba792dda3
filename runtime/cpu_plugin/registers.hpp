// LLVM's vectors as the registers of AVX-512 that they become.
#pragma once

#include <llvm/ADT/ArrayRef.h>
#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/DerivedTypes.h>
#include <llvm/IR/IRBuilder.h>

namespace chainfold::runtime::cpu {

/// Bits of a register; vectors are of this width only where the host has AVX-512 with DQ (Host).
inline constexpr int kRegisterBits = 512;
/// How many of them there are.
inline constexpr int kRegisters = 32;

/// Lanes of a register of the type's elements.
int register_lanes(const llvm::FixedVectorType& type);
/// Registers that a vector of any type takes, the last one perhaps not full; 0 for other types.
int registers_of(const llvm::Type& type);
/// Registers of a vector of f32 or f64 that fills a power of two of them; else 0.
int float_registers(const llvm::Type& type);

/// Lanes [first, first + count) of the vector.
llvm::Value* slice(llvm::IRBuilder<>& at, llvm::Value* vector, int first, int count);

/// The vectors, of one type, one after the other; their number is a power of two.
llvm::Value* concatenate(llvm::IRBuilder<>& at, llvm::SmallVector<llvm::Value*> parts);

/// Calls `body` with one register of each of the vectors, for all registers, and joins its results
/// to one vector. The vectors are of one type and fill a power of two of registers.
llvm::Value* by_registers(llvm::IRBuilder<>& at, llvm::ArrayRef<llvm::Value*> vectors,
                          llvm::function_ref<llvm::Value*(llvm::ArrayRef<llvm::Value*>)> body);

}  // namespace chainfold::runtime::cpu
