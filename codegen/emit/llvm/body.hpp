// Writes the body of one launch: what one warp does in one block, in program order.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "chainfold/codegen/emit/llvm/ops.hpp"
#include "chainfold/codegen/emit/llvm/text.hpp"
#include "chainfold/codegen/program/program.hpp"

namespace chainfold::codegen::llvm {

/// The names of the function's arguments that hold a buffer's pointer and a parameter; of the
/// block.
std::string buffer_name(int buffer);
std::string param_name(int param);
inline constexpr const char* kBlockName = "%block";

/// Lanes whose elements lie end to end in memory.
int run_lanes(const Address& at, const Type& type);
/// The integer that has a lane's elements.
std::string word_type(const Type& type);

class BodyEmitter {
 public:
  /// `streams`: whether stores with Store::streams are non-temporal.
  BodyEmitter(const Program& program, const Launch& launch, FunctionWriter& out, bool streams);
  /// Appends the instructions of `region` to the writer.
  void emit(const Region& region);

 private:
  using Names =
      std::vector<std::string>;  // one a element of a value: a vector of lanes, or a scalar

  void emit_op(const Instr& instr, const Const& op);
  void emit_op(const Instr& instr, const Special& op);
  void emit_op(const Instr& instr, const ParamRef& op);
  void emit_op(const Instr& instr, const Load& op);
  void emit_op(const Instr& instr, const Store& op);
  void emit_op(const Instr& instr, const SharedLoad& op);
  void emit_op(const Instr& instr, const SharedStore& op);
  void emit_op(const Instr&, const Barrier&) {}  // of one warp
  void emit_op(const Instr& instr, const Compute& op);
  void emit_op(const Instr& instr, const Splat& op);
  void emit_op(const Instr& instr, const Extract& op);
  void emit_op(const Instr& instr, const Concat& op);
  void emit_op(const Instr& instr, const Shuffle& op);
  void emit_op(const Instr& instr, const Permute& op);
  void emit_op(const Instr& instr, const Vote& op);
  void emit_op(const Instr& instr, const Misalignment& op);
  void emit_op(const Instr& instr, const Ticket& op);
  void emit_op(const Instr& instr, const Publish& op);
  void emit_op(const Instr& instr, const Await& op);
  void emit_op(const Instr& instr, const Overdue& op);
  void emit_op(const Instr& instr, const For& op);
  void emit_op(const Instr& instr, const If& op);
  template <class Unsupported>
  void emit_op(const Instr& instr, const Unsupported&);

  /// Asks for the lines of [from, to) bytes behind `pointer`; returns where the next one begins.
  std::int64_t read_ahead(const std::string& pointer, std::int64_t from, std::int64_t to);
  /// `count` of the elements or words side by side; `mask` has a bit for each, or is empty.
  std::string load_run(const std::string& pointer, int count, const std::string& element, int align,
                       const std::string& mask);
  std::string bytes_of(ValueId mask);
  std::string load_mask(const Load& op, const Type& t, const std::string& bytes, int first,
                        int lanes);
  std::string every(const std::string& all, std::string_view elem, int e, int width);
  void take_apart(ValueId id, const std::string& words);
  std::string put_together(const std::vector<std::string>& halves);
  bool convert_pairs(ValueId id, const Compute& op);
  /// Loads and stores name buffers by their numbers, and a block's arrays by these.
  static int memory_of_array(int array) { return -1 - array; }
  [[nodiscard]] std::string memory_name(int memory) const;
  [[nodiscard]] DType memory_elem(int memory) const;
  /// The first element of a group of lanes.
  std::string pointer_to(int memory, const Address& at, int group);
  /// The element at which a group of lanes begins.
  std::string index_of(const Address& at, int group);
  std::string load_bits(int buffer, const std::string& first, int count, const std::string& live);
  std::vector<std::string> mask_words(const Load& op, int width);
  void emit_packed(const Instr& instr, const Load& op);
  void load_uniform_bits(ValueId id, const Load& op);
  /// Where each lane's own element is (Address::offset), a vector.
  std::string own_pointers(int memory, const Address& at);
  std::string gather(const Load& op, std::string_view elem);
  void store_uniform(const Store& op);
  void scatter(const Store& op, const std::string& values, const std::string& mask);
  std::string element_pointer(int memory, const std::string& index);
  std::string record_pointer(int buffer, const std::string& slot, const RecordLayout& layout);
  std::string field_pointer(const std::string& record, const RecordLayout::Field& field);
  /// The loop over the slots that an Await or an Overdue names. Its labels begin with `label`, and
  /// three blocks are open. Block `published_to` is for what happens to `slot` once it is
  /// published, and goes on to "passed". Block "late" is for a slot that is not published after
  /// `polls` + 1 looks. It goes on to "poll", of an Overdue by way of "wait". Block "done" is
  /// behind the last slot.
  struct Polling {
    std::string label, slot, record, polls;
  };
  template <class Look>
  Polling poll_slots(const Look& op, const RecordLayout& layout, std::string_view published_to);
  /// The mask of `count` elements of which `width` belong to each lane, from lane `first` on; empty
  /// for all.
  std::string run_mask(const std::string& lanes, int first, int count, int width);
  std::string lane_mask(ValueId mask);
  /// `other`: of sources from 32 on; may be kNoValue.
  void permute(ValueId result, ValueId value, ValueId other, const std::vector<int>& source);

  [[nodiscard]] const Type& type(ValueId id) const { return program_.type(id); }
  [[nodiscard]] static int lanes_of(const Type& t) {
    return t.shape == Shape::lane ? kWarpWidth : 0;
  }
  /// The LLVM type of one element of a value.
  [[nodiscard]] std::string text_type(ValueId id) const {
    return vector_of(register_type(type(id).elem), lanes_of(type(id)));
  }
  [[nodiscard]] const Names& names(ValueId id) const { return values_[id]; }
  [[nodiscard]] const std::string& name(ValueId id) const { return values_[id][0]; }
  /// Element i of a value (any i of a width-1 value is that value) as a scalar, or as a vector of
  /// lanes.
  std::string element(ValueId id, int i, int lanes);

  const Program& program_;
  const Launch& launch_;
  FunctionWriter& out_;
  std::vector<Names> values_;
  std::vector<std::string> arrays_;  ///< the block's
  /// Of values that are a pair of halves a lane the same as these lie in memory, where that is
  /// known.
  std::map<ValueId, std::string> pairs_;
  bool streams_;
};

}  // namespace chainfold::codegen::llvm
