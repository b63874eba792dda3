// Writes the body of one kernel: one statement an instruction, in program order.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "chainfold/codegen/emit/cuda/text.hpp"
#include "chainfold/codegen/program/program.hpp"

namespace chainfold::codegen::cuda {

/// The name of the variable that holds a buffer's pointer, a parameter or a shared array.
std::string buffer_name(const Program& program, int buffer);
std::string param_name(const Program& program, int param);
std::string shared_name(const Launch& launch, int array);
std::string ring_name(const Launch& launch, int ring);
/// The pointer to the shared word through which a block's warps learn its ticket.
inline constexpr const char* kTicketWord = "ticket_word";
/// The pointer to the words in which a block hands over what its cluster gathers.
inline constexpr const char* kGatherWords = "gather_words";
/// The variable that holds the hint of kept loads to the second-level cache (evict-last).
inline constexpr const char* kKeepHint = "keep_hint";

class BodyEmitter {
 public:
  BodyEmitter(const Program& program, const Launch& launch) : program_(program), launch_(launch) {}
  /// The statements of `region`, without its yields, indented by one step.
  std::string emit(const Region& region);
  /// Whether what was emitted reads `warp`.
  [[nodiscard]] bool uses_warp() const { return uses_warp_; }

 private:
  using Source = std::pair<ValueId, int>;  // an element of a value; kNoValue: a zero

  void emit_region(const Region& region);
  void emit_yields(const std::vector<ValueId>& results, const Region& region);
  void emit_op(const Instr& instr, const Const& op);
  void emit_op(const Instr& instr, const Special& op);
  void emit_op(const Instr& instr, const ParamRef& op);
  void emit_op(const Instr& instr, const Load& op);
  void emit_op(const Instr& instr, const Store& op);
  void emit_op(const Instr& instr, const AtomicAdd& op);
  void emit_op(const Instr& instr, const SharedLoad& op);
  void emit_op(const Instr& instr, const SharedStore& op);
  void emit_op(const Instr& instr, const Compute& op);
  void emit_op(const Instr& instr, const Splat& op);
  void emit_op(const Instr& instr, const Extract& op);
  void emit_op(const Instr& instr, const Concat& op);
  void emit_op(const Instr& instr, const Shuffle& op);
  void emit_op(const Instr& instr, const Permute& op);
  void emit_op(const Instr& instr, const Funnel& op);
  void emit_op(const Instr& instr, const Vote& op);
  void emit_op(const Instr& instr, const ConstFragment& op);
  void emit_op(const Instr& instr, const Pack& op);
  void emit_op(const Instr& instr, const Mma& op);
  void emit_op(const Instr& instr, const Barrier& op);
  void emit_op(const Instr& instr, const WaitForLaunch& op);
  void emit_op(const Instr& instr, const LetNextStart& op);
  void emit_op(const Instr& instr, const Misalignment& op);
  void emit_op(const Instr& instr, const CopyAsync& op);
  void emit_op(const Instr& instr, const CopyWait& op);
  void emit_op(const Instr& instr, const CopyOut& op);
  void emit_op(const Instr& instr, const CopyOutWait& op);
  void emit_op(const Instr& instr, const Ticket& op);
  void emit_op(const Instr& instr, const Publish& op);
  void emit_op(const Instr& instr, const Await& op);
  void emit_op(const Instr& instr, const Overdue& op);
  void emit_op(const Instr& instr, const Gather& op);
  void emit_op(const Instr& instr, const For& op);
  void emit_op(const Instr& instr, const If& op);

  void emit_load(ValueId result, std::string_view function, const std::string& pointer,
                 ValueId mask);
  void emit_store(ValueId value, std::string_view function, const std::string& pointer,
                  ValueId mask);
  std::vector<std::string> shuffled(ValueId value, std::string_view function,
                                    const std::string& source);
  void emit_shuffle(ValueId result, ValueId value, std::string_view function,
                    const std::string& source);
  [[nodiscard]] std::string address(const std::string& array, const Address& at,
                                    const Type& type) const;
  /// Lanes' places in an array, in elements.
  [[nodiscard]] std::string index(const Address& at, const Type& t) const;
  void emit_bits(ValueId result, std::string_view function, const Load& op);
  [[nodiscard]] std::string mask_argument(ValueId mask) const;

  void line(const std::string& text);
  void declare(ValueId id, const std::vector<std::string>& values);  // one expression a variable
  void define(ValueId id, const std::vector<std::string>& elements);
  void widen_halves(ValueId id, ValueId halves);      // a packed vector of f16 to f32
  void widen_integers(ValueId id, ValueId integers);  // of narrow integers, likewise
  void define_from(ValueId id, const std::vector<Source>& elements);
  [[nodiscard]] const Type& type(ValueId id) const { return program_.type(id); }
  // What stands for a value: its variables, or for constants, parameters and the like a text of its
  // own.
  [[nodiscard]] std::string word_of(ValueId id, int i) const;
  [[nodiscard]] std::vector<std::string> words_of(ValueId id) const;
  [[nodiscard]] std::string element_of(ValueId id, int i) const;
  [[nodiscard]] std::string name(ValueId id) const { return word_of(id, 0); }

  const Program& program_;
  const Launch& launch_;
  // Values that need no variables: what stands for each word, or one text for all of them.
  std::map<ValueId, std::vector<std::string>> named_;
  std::string text_;
  int depth_ = 1;
  bool uses_warp_ = false;
};

}  // namespace chainfold::codegen::cuda
