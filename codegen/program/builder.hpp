// Builder: appends well-typed instructions to a Program. Lowerings and tests write programs through
// it.
//
// The Builder infers result types. It evaluates operations on constants with base/ops.hpp's
// definition, so an executor never sees them. It returns the earlier value where the same pure
// operation on the same operands already stands in the region or around it. It simplifies nothing
// that could change a bit.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "chainfold/codegen/program/program.hpp"

namespace chainfold::codegen {

class Builder {
 public:
  using Values = std::vector<ValueId>;
  /// Writes the body of the program's last launch. The program must outlive the Builder.
  explicit Builder(Program& program);

  [[nodiscard]] const Program& program() const { return program_; }
  /// The shared arrays of the launch that is being written.
  [[nodiscard]] std::vector<SharedArray>& shared() { return program_.launches.back().shared; }
  /// A copy: every new value may move those before it.
  [[nodiscard]] Type type(ValueId id) const { return program_.type(id); }
  /// The constant behind a value, if it is one.
  [[nodiscard]] std::optional<Bits> constant_of(ValueId id) const;

  ValueId constant(DType type, Bits bits);
  ValueId i64(std::int64_t value) { return constant(DType::i64, static_cast<Bits>(value)); }
  ValueId i32(std::int32_t value) {
    return constant(DType::i32, static_cast<std::uint32_t>(value));
  }
  ValueId boolean(bool value) { return constant(DType::boolean, value ? 1 : 0); }
  ValueId block();           ///< uniform i64
  ValueId warp();            ///< uniform i32
  ValueId lane();            ///< lane i32
  ValueId streams();         ///< uniform boolean
  ValueId param(int index);  ///< uniform

  /// `width` elements a lane of `buffer`; zeros where `mask` is false.
  ValueId load(int buffer, const Address& at, int width = 1, ValueId mask = kNoValue,
               ValueId ahead = kNoValue, bool once = false);
  /// The one element at `base`; zero where `mask` (uniform) is false.
  ValueId load_uniform(int buffer, ValueId base, ValueId mask = kNoValue);
  /// The one element at `base`, of a uniform value, or lane 0's.
  void store_uniform(int buffer, ValueId base, ValueId value, ValueId mask = kNoValue);
  void store(int buffer, const Address& at, ValueId value, ValueId mask = kNoValue,
             bool streams = false);
  /// What was there before, a lane.
  ValueId atomic_add(int buffer, const Address& at, ValueId value, ValueId mask,
                     AtomicOrder order = AtomicOrder::relaxed);
  ValueId shared_load(int array, const Address& at, int width = 1, ValueId mask = kNoValue);
  void shared_store(int array, const Address& at, ValueId value, ValueId mask = kNoValue);

  ValueId compute(Op op, Values operands);
  /// A cast (base/ops.hpp) of the value to a type.
  ValueId cast(Op op, ValueId value, DType to);
  ValueId convert(ValueId value, DType to) { return cast(Op::convert, value, to); }
  ValueId add(ValueId a, ValueId b) { return compute(Op::add, {a, b}); }
  ValueId sub(ValueId a, ValueId b) { return compute(Op::sub, {a, b}); }
  ValueId mul(ValueId a, ValueId b) { return compute(Op::mul, {a, b}); }
  ValueId div(ValueId a, ValueId b) { return compute(Op::div, {a, b}); }
  ValueId rem(ValueId a, ValueId b) { return compute(Op::rem, {a, b}); }
  ValueId min(ValueId a, ValueId b) { return compute(Op::min, {a, b}); }
  ValueId lt(ValueId a, ValueId b) { return compute(Op::lt, {a, b}); }
  /// Conjunction of masks; kNoValue stands for "all true".
  ValueId both(ValueId a, ValueId b);
  ValueId select(ValueId condition, ValueId a, ValueId b) {
    return compute(Op::select, {condition, a, b});
  }
  /// The lane form of a uniform value; lane values pass through.
  ValueId splat(ValueId value);
  /// A value of one element as a lane value of `width` equal ones; others pass through splat.
  ValueId widen(ValueId value, int width);
  ValueId extract(ValueId value, int first, int width = 1);
  ValueId concat(Values parts);
  ValueId shuffle_xor(ValueId value, int mask);
  ValueId shuffle_from(ValueId value, ValueId source_lane);
  ValueId shuffle_up(ValueId value, int distance);    ///< of lane l - distance, or its own
  ValueId shuffle_down(ValueId value, int distance);  ///< of lane l + distance, or its own
  ValueId first_lane(ValueId value);                  ///< lane 0's, uniform
  ValueId permute(ValueId value, std::vector<std::uint8_t> source);
  /// Sources 0 to 31 are lanes of `value`, 32 to 63 of `other`.
  ValueId permute(ValueId value, ValueId other, std::vector<std::uint8_t> source);
  /// A word of elements from element `from` (i32) of `low` on, which `high` follows.
  ValueId funnel(ValueId low, ValueId high, ValueId from);
  ValueId any(ValueId lanes);
  ValueId all(ValueId lanes);
  ValueId count(ValueId lanes);  ///< of those that are true, uniform i32
  ValueId const_fragment(int mma_row, Operand operand, const ConstMatrix& matrix);
  ValueId pack(int mma_row, Operand operand, std::vector<std::pair<ValueId, int>> pieces);
  ValueId mma(ValueId a, ValueId b, ValueId c);
  void barrier();
  ValueId misalignment(int buffer, ValueId first, int unit);
  void copy_async(const CopyAsync& copy);
  void copy_wait(int ring, ValueId slot, ValueId round);
  void copy_out(const CopyOut& copy);
  void copy_out_wait();
  ValueId ticket(int counter);
  void publish(int flags, ValueId slot, ValueId ticket, Values values = {}, bool helps = false);
  /// A value for each of `values`, see Gather.
  Values gather(Values values);
  /// Returns what the slots carry, which is of these types.
  Values await(const Await& wait, const std::vector<DType>& types = {});
  ValueId overdue(const Overdue& look);

  /// A loop: for (index = lo; index < hi; index += step). `body(index, carried)` returns the next
  /// carried values, which have the types of `init`. The loop returns the values after the last
  /// trip.
  Values loop(ValueId lo, ValueId hi, ValueId step, const Values& init,
              const std::function<Values(ValueId, const Values&)>& body, bool few = false);
  /// Both functions return the same number of values; uniform ones are splatted.
  Values branch(ValueId condition, const std::function<Values()>& then_body,
                const std::function<Values()>& else_body);
  /// The same of values whose shapes are the same either way, and stay so.
  Values branch_as_is(ValueId condition, const std::function<Values()>& then_body,
                      const std::function<Values()>& else_body);
  /// The same of one value that is uniform either way, and stays so.
  ValueId branch_uniform(ValueId condition, const std::function<ValueId()>& then_body,
                         const std::function<ValueId()>& else_body);

 private:
  using Key = std::vector<std::int64_t>;
  ValueId emit(Operation op, const Type& type, const Key* key = nullptr);
  ValueId pure(Operation op, const Type& type, Key key);
  ValueId new_value(const Type& type);
  Values run_region(Region& region, const std::function<Values()>& fn);

  Program& program_;
  std::vector<Region*> regions_;
  std::vector<std::map<Key, ValueId>> known_;  // one a region, innermost last
  std::map<ValueId, Bits> constants_;
};

}  // namespace chainfold::codegen
