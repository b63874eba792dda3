#include "chainfold/codegen/program/rules.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/base/integer_math.hpp"
#include "chainfold/codegen/program/print.hpp"

namespace chainfold::codegen {

void fail(const Broken& where, std::string_view rule) {
  std::string text = "program " + where.program.name;
  if (where.launch != nullptr) text += ", launch " + where.launch->name;
  if (where.instr != nullptr) text += ", " + print(where.program, *where.launch, *where.instr);
  throw InternalError(fmt::format("{}: {}", text, rule), print(where.program));
}

namespace {

constexpr int kMaxAccessBytes = 16;

/// The rules of one instruction.
class Rules {
 public:
  Rules(const Program& program, const Launch& launch, const Instr& instr,
        const std::vector<const Const*>& constant)
      : program_(program), launch_(launch), instr_(instr), constant_(constant) {}

  void check_all() const {
    for (const ValueId id : instr_.results)
      check(id < program_.values.size(), "a result has no type");
    std::visit([&](const auto& op) { operation(op, instr_); }, instr_.op);
  }

 private:
  void check(bool holds, std::string_view rule) const {
    if (!holds) fail(rule);
  }
  [[noreturn]] void fail(std::string_view rule) const {
    codegen::fail({program_, &launch_, &instr_}, rule);
  }
  const Type& type_of(ValueId id) const { return program_.values[id]; }

  const Type& result(const Instr& instr) const {
    check(instr.results.size() == 1, "this operation has one result");
    return program_.values[instr.results[0]];
  }
  void no_result(const Instr& instr) const {
    check(instr.results.empty(), "this operation has no result");
  }
  void expect(const Instr& instr, const Type& type) const {
    if (result(instr) != type) fail("the result should be " + print(type));
  }

  void operation(const Const& op, const Instr& instr) const {
    const Type& type = result(instr);
    check(type == uniform(type.elem), "a constant is a uniform scalar");
    const int bits = type.elem == DType::boolean ? 1 : 8 * size_of(type.elem);
    check(bits == 64 || op.bits >> bits == 0, "a constant has bits beyond its type");
  }
  void operation(const Special& op, const Instr& instr) const {
    switch (op.which) {
      case Builtin::block: return expect(instr, uniform(DType::i64));
      case Builtin::warp: return expect(instr, uniform(DType::i32));
      case Builtin::lane: return expect(instr, lane(DType::i32));
      case Builtin::streams: return expect(instr, uniform(DType::boolean));
    }
    check(false, "no such builtin");
  }
  void operation(const ParamRef& op, const Instr& instr) const {
    check(op.index >= 0 && static_cast<std::size_t>(op.index) < program_.params.size(),
          "the parameter is out of range");
    expect(instr, uniform(program_.params[static_cast<std::size_t>(op.index)].type));
  }

  // `type` is that of the loaded or stored value, `elem` and `alignment` are those of the memory.
  // The value may lie `anywhere` in it, or on its width. The mask may be one `by_elements`.
  void access(const Address& at, ValueId mask, const Type& type, DType elem, int alignment,
              bool anywhere = false, bool by_elements = false) const {
    check(type_of(at.base) == uniform(DType::i64), "an address is a uniform i64");
    if (at.offset != kNoValue)
      check(type_of(at.offset) == lane(DType::i32) || type_of(at.offset) == lane(DType::i64),
            "an address's offset is a lane i32 or i64");
    check(type.shape != Shape::fragment && type.elem == elem,
          "the value is not of the memory's type");
    check(is_power_of_two(at.group) && at.group <= kWarpWidth,
          "a group is a power of two up to 32");
    check(is_power_of_two(type.width), "the width of an access is a power of two");
    check(type.width * size_of(elem) <= kMaxAccessBytes, "an access is wider than 16 bytes");
    check(at.group == kWarpWidth || at.stride % type.width == 0 || anywhere,
          "the stride misaligns a wide access");
    if (at.step != kNoValue) {
      check(type_of(at.step) == uniform(DType::i64), "a step between groups is a uniform i64");
      check(at.group < kWarpWidth && at.stride == 0, "a step stands in the place of a stride");
    }
    if (mask != kNoValue) {
      const Type& lanes = type_of(mask);
      check(lanes.elem == DType::boolean && lanes.shape != Shape::fragment, "a mask is a boolean");
      check(lanes.width == 1 ||
                (by_elements && type.shape == Shape::lane && lanes.width == type.width),
            "a mask is of width 1, or as wide as the load from memory that is accessed anywhere");
      check(type.shape == Shape::lane || lanes.shape == Shape::uniform,
            "a uniform access has a uniform mask");
    }
    if (const Const* base = constant_[at.base]; base != nullptr && !anywhere) {
      const auto index = static_cast<std::int64_t>(base->bits);
      check(index % type.width == 0 && type.width * size_of(elem) <= alignment,
            "a wide access at a constant place is not aligned");
    }
  }
  const Buffer& buffer(int index) const {
    check(index >= 0 && static_cast<std::size_t>(index) < program_.buffers.size(),
          "the buffer is out of range");
    return program_.buffers[static_cast<std::size_t>(index)];
  }
  const SharedArray& array(int index) const {
    check(index >= 0 && static_cast<std::size_t>(index) < launch_.shared.size(),
          "the shared array is out of range");
    return launch_.shared[static_cast<std::size_t>(index)];
  }
  const Type& stored(ValueId value) const {
    const Type& type = type_of(value);
    check(type.shape == Shape::lane, "lanes store lane values");
    return type;
  }
  void operation(const Load& op, const Instr& instr) const {
    const Buffer& from = buffer(op.buffer);
    const bool single = result(instr) == lane(from.type) && !from.packed;
    check(op.at.offset == kNoValue ||
              (single && op.at.step == kNoValue && op.ahead == kNoValue && !op.evict_first),
          "lanes' own offsets are for shared arrays and for single elements");
    if (op.ahead != kNoValue)
      check(type_of(op.ahead) == uniform(DType::i64), "what is read ahead is a uniform i64");
    if (from.packed)
      check(from.role == BufferRole::input && from.type == DType::boolean && op.ahead == kNoValue,
            "bits are an input's booleans");
    access(op.at, op.mask, result(instr), from.type, from.alignment,
           program_.accesses_anywhere || from.packed, program_.accesses_anywhere);
  }
  void operation(const Store& op, const Instr& instr) const {
    no_result(instr);
    const Buffer& to = buffer(op.buffer);
    check(to.role != BufferRole::input, "an input is never written");
    check(op.at.offset == kNoValue || (type_of(op.value).width == 1 && op.at.step == kNoValue),
          "lanes' own offsets are for shared arrays and for single elements");
    const Type& value = type_of(op.value);
    check(value.shape != Shape::uniform || (op.at.offset == kNoValue && !op.streams),
          "a uniform store has one place, in memory that is cached");
    access(op.at, op.mask, value, to.type, to.alignment, program_.accesses_anywhere);
  }
  void operation(const AtomicAdd& op, const Instr& instr) const {
    const Buffer& to = buffer(op.buffer);
    check(to.role != BufferRole::input, "an input is never written");
    check(op.at.offset == kNoValue, "lanes' own offsets are for shared arrays");
    check(size_of(to.type) >= 4, "atomic operations are on types of 4 or 8 bytes");
    check(stored(op.value).width == 1, "an atomic operation is of width 1");
    access(op.at, op.mask, stored(op.value), to.type, to.alignment);
    expect(instr, lane(to.type));
  }
  void operation(const SharedLoad& op, const Instr& instr) const {
    access(op.at, op.mask, result(instr), array(op.array).type, kMaxAccessBytes);
  }
  void operation(const SharedStore& op, const Instr& instr) const {
    no_result(instr);
    access(op.at, op.mask, stored(op.value), array(op.array).type, kMaxAccessBytes);
  }

  void operation(const Compute& op, const Instr& instr) const {
    check(static_cast<int>(op.operands.size()) == arity(op.op),
          "the operation has another number of operands");
    bool lanes = false;
    std::int16_t width = 1;
    for (ValueId id : op.operands) {
      check(type_of(id).shape != Shape::fragment,
            "elementwise operations take no fragments; extract first");
      lanes = lanes || type_of(id).shape == Shape::lane;
      width = std::max(width, type_of(id).width);
    }
    const DType elem = type_of(op.operands.back()).elem;
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      const Type& type = type_of(op.operands[i]);
      check(type.width == 1 || type.width == width, "operands of different widths");
      const bool condition = op.op == Op::select && i == 0;
      check(type.elem == (condition ? DType::boolean : elem), "operands of different types");
    }
    if (!is_defined(op.op, elem)) fail(fmt::format("not defined on {}", name_of(elem)));
    const Type& type = result(instr);
    if (is_cast(op.op) && !is_defined(op.op, elem, type.elem))
      fail(fmt::format("no such cast of {} to {}", name_of(elem), name_of(type.elem)));
    const DType computed = is_cast(op.op) ? type.elem : is_test(op.op) ? DType::boolean : elem;
    expect(instr,
           {.elem = computed, .shape = lanes ? Shape::lane : Shape::uniform, .width = width});
  }
  void operation(const Splat& op, const Instr& instr) const {
    const Type& type = type_of(op.value);
    check(type.shape == Shape::uniform, "only uniform values are splatted");
    expect(instr, lane(type.elem, type.width));
  }
  void operation(const Extract& op, const Instr& instr) const {
    const Type& from = type_of(op.value);
    check(from.shape != Shape::fragment || from.operand == Operand::c,
          "only C fragments are taken apart");
    const int width = result(instr).width;
    check(op.first >= 0 && op.first + width <= from.width, "the elements are out of range");
    expect(instr, {.elem = from.elem,
                   .shape = from.shape == Shape::uniform ? Shape::uniform : Shape::lane,
                   .width = static_cast<std::int16_t>(width)});
  }
  void operation(const Concat& op, const Instr& instr) const {
    check(!op.parts.empty(), "nothing to concatenate");
    bool lanes = false;
    int width = 0;
    for (ValueId id : op.parts) {
      const Type& type = type_of(id);
      check(type.shape != Shape::fragment, "fragments are not concatenated; pack instead");
      check(type.elem == type_of(op.parts[0]).elem, "parts of different types");
      lanes = lanes || type.shape == Shape::lane;
      width += type.width;
    }
    expect(instr, {.elem = type_of(op.parts[0]).elem,
                   .shape = lanes ? Shape::lane : Shape::uniform,
                   .width = static_cast<std::int16_t>(width)});
  }
  void operation(const Shuffle& op, const Instr& instr) const {
    check(type_of(op.value).shape == Shape::lane, "only lane values are shuffled");
    if (op.kind != ShuffleKind::from_lane) {
      check(op.mask >= 0 && op.mask < kWarpWidth && op.source == kNoValue,
            "the mask is 0 to 31, without a source");
    } else {
      check(op.source != kNoValue, "the shuffle names no source");
      check(type_of(op.source) == lane(DType::i32) || type_of(op.source) == uniform(DType::i32),
            "the source is an i32");
    }
    Type shuffled = type_of(op.value);
    if (op.kind == ShuffleKind::first) shuffled.shape = Shape::uniform;
    expect(instr, shuffled);
  }
  void operation(const Permute& op, const Instr& instr) const {
    check(type_of(op.value).shape == Shape::lane, "only lane values are permuted");
    check(op.source.size() == kWarpWidth, "a permutation names 32 lanes");
    const int lanes = op.other == kNoValue ? kWarpWidth : 2 * kWarpWidth;
    for (std::uint8_t source : op.source)
      check(source < lanes, fmt::format("a permutation names a lane beyond {}", lanes - 1));
    if (op.other != kNoValue)
      check(type_of(op.other) == type_of(op.value), "lanes of two types are permuted");
    expect(instr, type_of(op.value));
  }
  void operation(const Funnel& op, const Instr& instr) const {
    constexpr int kWord = 4;
    const Type& word = type_of(op.low);
    check(word.shape == Shape::lane && word.elem != DType::boolean && word.width > 1 &&
              word.width * size_of(word.elem) == kWord,
          "a funnel shift is of words of narrower elements");
    check(type_of(op.high) == word, "words of two types are shifted");
    check(type_of(op.from) == lane(DType::i32), "the first element is an i32 a lane");
    expect(instr, word);
  }
  void operation(const Vote& op, const Instr& instr) const {
    check(type_of(op.value) == lane(DType::boolean), "a vote is over a lane boolean");
    expect(instr, uniform(op.kind == VoteKind::count ? DType::i32 : DType::boolean));
  }

  const MmaRow& row_of(const Type& type) const {
    check(type.shape == Shape::fragment, "this should be a fragment");
    return mma_table()[static_cast<std::size_t>(type.mma_row)];
  }
  void operation(const ConstFragment& op, const Instr& instr) const {
    const Type& type = result(instr);
    const MmaRow& row = row_of(type);
    const ConstMatrix& matrix = op.matrix;
    if (matrix.kind == MatrixKind::zeros) return;
    check(type.operand == Operand::a || (type.operand == Operand::b && serves_b(matrix.kind)),
          "only A fragments are constant, but for zeros, and for B where data is A");
    check(type.operand == Operand::b || serves_a(matrix.kind), "the kind has no A fragments");
    if (type.operand == Operand::b) {
      const QuadLayout layout(row);
      check(matrix.load_width == 0 || matrix.load_width == row.elements(Operand::a),
            "a load of data fills its A fragment");
      check(matrix.step >= 0 && matrix.step < (matrix.load_width == 0 ? row.k / 8 : layout.steps()),
            "the step lies beyond what a lane loads");
      return;
    }
    check(
        matrix.load_width == 0
            ? matrix.step == 0
            : matrix.step >= 0 && (matrix.step + 1) * row.elements(Operand::b) <= matrix.load_width,
        "the step lies beyond what a lane loads");
    const bool sized = matrix.kind == MatrixKind::band || matrix.kind == MatrixKind::segments;
    check(!sized || matrix.parameter > 0, "the matrix needs a positive length");
  }
  void operation(const Pack& op, const Instr& instr) const {
    const Type& type = result(instr);
    row_of(type);
    int width = 0;
    for (const auto& [id, count] : op.pieces) {
      check(id != kNoValue || count > 0, "a run of zeros needs a count");
      if (id == kNoValue) {
        width += count;
        continue;
      }
      check(type_of(id).shape != Shape::fragment && type_of(id).elem == type.elem,
            "a piece is not of the fragment's element type");
      width += type_of(id).width;
    }
    check(width == type.width, "the pieces do not fill the fragment");
  }
  void operation(const Mma& op, const Instr& instr) const {
    const Type& type = result(instr);
    row_of(type);
    check(type_of(op.a) == fragment(type.mma_row, Operand::a), "A is not this row's A fragment");
    check(type_of(op.b) == fragment(type.mma_row, Operand::b), "B is not this row's B fragment");
    check(type_of(op.c) == fragment(type.mma_row, Operand::c), "C is not this row's C fragment");
    expect(instr, type_of(op.c));
  }
  void operation(const Barrier&, const Instr& instr) const { no_result(instr); }
  void operation(const WaitForLaunch&, const Instr& instr) const { no_result(instr); }
  void operation(const LetNextStart&, const Instr& instr) const { no_result(instr); }

  void index_of_copy(ValueId id) const {
    check(type_of(id) == uniform(DType::i64), "places and numbers of copies are uniform i64");
  }
  void slot_of_ring(int ring, ValueId slot) const {
    check(ring >= 0 && static_cast<std::size_t>(ring) < launch_.rings.size(),
          "the ring is out of range");
    index_of_copy(slot);
  }
  void operation(const Misalignment& op, const Instr& instr) const {
    check(!buffer(op.buffer).packed, "bits are nowhere on a boundary");
    check(is_power_of_two(op.unit) && op.unit >= size_of(buffer(op.buffer).type),
          "a boundary's unit is a power of two of at least an element");
    index_of_copy(op.first);
    expect(instr, uniform(DType::i64));
  }
  void operation(const CopyAsync& op, const Instr& instr) const {
    no_result(instr);
    const Buffer& from = buffer(op.buffer);
    check(from.role == BufferRole::input, "only inputs are copied");
    check(!from.packed, "bits are not copied");
    check(!program_.in_place || op.begin != kNoValue,
          "a copy of a program in place says where what it touches begins");
    check(array(op.array).type == from.type, "a copy does not convert");
    check(op.elements > 0 && op.elements * size_of(from.type) % kMaxAccessBytes == 0,
          "a copy is of whole units of 16 bytes");
    check(is_power_of_two(op.unit) && op.unit >= kMaxAccessBytes,
          "a copy begins on a boundary of at least 16 bytes");
    index_of_copy(op.first);
    index_of_copy(op.to);
    if (op.begin != kNoValue) index_of_copy(op.begin);
    index_of_copy(op.limit);
    slot_of_ring(op.ring, op.slot);
  }
  void operation(const CopyWait& op, const Instr& instr) const {
    no_result(instr);
    slot_of_ring(op.ring, op.slot);
    index_of_copy(op.round);
  }

  void operation(const CopyOut& op, const Instr& instr) const {
    no_result(instr);
    const Buffer& to = buffer(op.buffer);
    check(launch_.bulk_copies, "lanes copy nothing out");
    check(to.role == BufferRole::output, "copies go out to outputs");
    check(array(op.array).type == to.type, "a copy does not convert");
    check(op.elements > 0 && op.elements * size_of(to.type) % kMaxAccessBytes == 0,
          "a copy is of whole units of 16 bytes");
    check(to.alignment % kMaxAccessBytes == 0, "what is copied out lies on 16 bytes");
    index_of_copy(op.first);
    index_of_copy(op.from);
  }
  void operation(const CopyOutWait&, const Instr& instr) const {
    no_result(instr);
    check(launch_.bulk_copies, "lanes copy nothing out");
  }

  void scratch(int index, DType type) const {
    const Buffer& found = buffer(index);
    check(found.role == BufferRole::scratch && found.type == type,
          "counters and records are scratch of i64, slots scratch of i32");
  }
  void slots(int index, const std::vector<ValueId>& values) const {
    scratch(index, values.empty() ? DType::i32 : DType::i64);
    check(values.empty() || buffer(index).alignment >= 16, "records lie on 16 bytes");
  }
  void operation(const Ticket& op, const Instr& instr) const {
    scratch(op.counter, DType::i64);
    expect(instr, uniform(DType::i64));
  }
  void operation(const Publish& op, const Instr& instr) const {
    no_result(instr);
    slots(op.flags, op.values);
    for (const ValueId id : op.values) {
      check(type_of(id).shape != Shape::fragment && type_of(id).width == 1,
            "a slot carries single elements");
    }
    check(!op.helps || !op.values.empty(), "who helps has nothing but the values");
    for (const ValueId id : {op.slot, op.ticket})
      check(type_of(id) == uniform(DType::i64), "slots and tickets are uniform i64");
  }
  void operation(const Await& op, const Instr& instr) const {
    slots(op.flags, instr.results);
    for (const ValueId id : instr.results)
      check(program_.values[id] == lane(program_.values[id].elem), "slots give an element a lane");
    for (const ValueId id : {op.first, op.count, op.ticket, op.publisher, op.stride})
      check(type_of(id) == uniform(DType::i64), "slots and tickets are uniform i64");
  }

  void operation(const Overdue& op, const Instr& instr) const {
    scratch(op.flags, DType::i64);
    check(!op.types.empty(), "what is overdue carries values");
    check(op.looks >= 1, "a slot is looked at");
    for (const ValueId id : {op.first, op.count, op.ticket, op.publisher, op.stride})
      check(type_of(id) == uniform(DType::i64), "slots and tickets are uniform i64");
    expect(instr, uniform(DType::i64));
  }

  void operation(const Gather& op, const Instr& instr) const {
    check(launch_.cluster > 1, "blocks without a cluster have nothing to gather");
    check(!op.values.empty() && op.values.size() == instr.results.size(),
          "a gather has a result for each value");
    for (std::size_t i = 0; i < op.values.size() && i < instr.results.size(); ++i) {
      const Type& type = type_of(op.values[i]);
      check(type.shape != Shape::fragment && type.width == 1, "blocks hand over single elements");
      check(program_.values[instr.results[i]] == lane(type.elem),
            "a gather gives an element a lane, of the value's type");
    }
  }

  void yields_match(const Region& region, const Instr& instr) const {
    check(region.yields.size() == instr.results.size(), "a region yields one value a result");
    for (std::size_t i = 0; i < region.yields.size(); ++i) {
      check(region.yields[i] < program_.values.size(), "an operand has no type");
      check(program_.values[region.yields[i]] == program_.values[instr.results[i]],
            fmt::format("yielded %{} is not of its result's type", region.yields[i]));
    }
  }
  void operation(const For& op, const Instr& instr) const {
    check(op.index < program_.values.size(), "the loop's index has no type");
    const Type& counter = program_.values[op.index];
    check(counter == uniform(DType::i64) || counter == uniform(DType::i32),
          "a loop's index is a uniform i64 or i32");
    for (ValueId id : {op.lo, op.hi, op.step})
      check(type_of(id) == counter, "a loop's bounds are of its index's type");
    check(op.init.size() == instr.results.size() && op.carried.size() == instr.results.size(),
          "a loop carries one value a result");
    for (std::size_t i = 0; i < op.init.size(); ++i) {
      check(op.carried[i] < program_.values.size(), "a carried value has no type");
      const Type& type = program_.values[op.carried[i]];
      check(type_of(op.init[i]) == type && program_.values[instr.results[i]] == type,
            fmt::format("carried %{} differs in type from its start or result", op.carried[i]));
    }
    yields_match(op.body, instr);
  }
  void operation(const If& op, const Instr& instr) const {
    check(type_of(op.condition) == uniform(DType::boolean), "a condition is a uniform boolean");
    yields_match(op.then_body, instr);
    yields_match(op.else_body, instr);
  }

  const Program& program_;
  const Launch& launch_;
  const Instr& instr_;
  const std::vector<const Const*>& constant_;
};

}  // namespace

void OperationRules::check(const Launch& launch, const Instr& instr) {
  Rules(program_, launch, instr, constant_).check_all();
  if (const auto* constant = std::get_if<Const>(&instr.op)) constant_[instr.results[0]] = constant;
}

}  // namespace chainfold::codegen
