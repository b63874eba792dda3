#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>
#include <string>
#include <string_view>

#include "chainfold/codegen/block_uniform.hpp"
#include "chainfold/codegen/error.hpp"
#include "chainfold/codegen/look_back_rules.hpp"
#include "chainfold/codegen/program.hpp"

namespace chainfold::codegen {
namespace {

constexpr int kMaxAccessBytes = 16;
constexpr int kMaxWarps = 32;

bool power_of_two(std::int64_t x) {
  return x > 0 && std::has_single_bit(static_cast<std::uint64_t>(x));
}

bool is_identifier(std::string_view name) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !name.empty() && letter(name[0]) && std::all_of(name.begin(), name.end(), [&](char c) {
    return letter(c) || (c >= '0' && c <= '9');
  });
}

class Verifier {
 public:
  explicit Verifier(const Program& program)
      : program_(program),
        state_(program.values.size(), State::undefined),
        constant_(program.values.size()) {}

  void run() {
    check_declarations();
    std::set<std::string> names;
    for (const Launch& launch : program_.launches) {
      launch_ = &launch;
      instr_ = nullptr;
      check(is_identifier(launch.name), "a launch's name must be an identifier");
      check(names.insert(launch.name).second, "two launches have one name");
      check(launch.warps >= 1 && launch.warps <= kMaxWarps, "a block has 1 to 32 warps");
      check(!launch.overlaps || launch_ != program_.launches.data(),
            "the first launch has none to overlap");
      check(launch.min_blocks >= 0, "min_blocks must not be negative");
      for (const SharedArray& array : launch.shared) {
        check(array.elements > 0, "a shared array needs elements");
      }
      for (const CopyRing& ring : launch.rings) check(ring.slots > 0, "a ring needs slots");
      nested(launch.body, {});
      instr_ = nullptr;
      check(launch.body.yields.empty(), "a launch's body yields nothing");
      if (const Instr* culprit = find_divergent_barrier(program_, launch)) {
        instr_ = culprit;
        check(false, "a barrier stands where warps of a block may differ");
      }
      if (const auto broken = find_broken_look_back(program_, launch)) {
        instr_ = broken->instr;
        fail(broken->rule);
      }
    }
  }

 private:
  enum class State : std::uint8_t { undefined, visible, gone };

  void check(bool holds, std::string_view rule) const {
    if (!holds) fail(rule);
  }
  [[noreturn]] void fail(std::string_view rule) const {
    std::string where = "program " + program_.name;
    if (launch_ != nullptr) where += ", launch " + launch_->name;
    if (instr_ != nullptr) where += ", " + print(program_, *launch_, *instr_);
    throw InternalError(fmt::format("{}: {}", where, rule), print(program_));
  }

  // --- declarations

  void check_declarations() {
    for (const Buffer& buffer : program_.buffers) {
      check(power_of_two(buffer.alignment) && buffer.alignment >= size_of(buffer.type),
            "a buffer's alignment must be a power of two of at least its element's size");
    }
    for (std::size_t i = 0; i < program_.values.size(); ++i) {
      const Type& type = program_.values[i];
      if (type.shape != Shape::fragment) {
        if (type.width < 1 || type.mma_row != -1) fail(fmt::format("%{} has a broken type", i));
        continue;
      }
      if (type.mma_row < 0 || static_cast<std::size_t>(type.mma_row) >= mma_table().size()) {
        fail(fmt::format("%{} is a fragment of no row of the table", i));
      }
      if (type != fragment(type.mma_row, type.operand)) {
        fail(fmt::format("%{} does not fit its row", i));
      }
    }
  }

  // --- definitions and uses

  void define(ValueId id) {
    check(id < program_.values.size(), "a result has no type");
    if (state_[id] != State::undefined) fail(fmt::format("%{} is defined twice", id));
    state_[id] = State::visible;
    scope_.push_back(id);
  }
  const Type& use(ValueId id) const {
    check(id < program_.values.size(), "an operand has no type");
    if (state_[id] != State::visible) fail(fmt::format("%{} is not visible here", id));
    return program_.values[id];
  }

  void region(const Region& region) {
    for (const Instr& instr : region.body) {
      instr_ = &instr;
      for_each_operand(instr.op, [&](ValueId id) { use(id); });
      for (ValueId id : instr.results) check(id < program_.values.size(), "a result has no type");
      std::visit([&](const auto& op) { operation(op, instr); }, instr.op);
      instr_ = &instr;
      for (ValueId id : instr.results) define(id);
      if (const auto* constant = std::get_if<Const>(&instr.op))
        constant_[instr.results[0]] = constant;
    }
    for (ValueId id : region.yields) use(id);
  }
  // A region inside an instruction: what it defines is gone behind it.
  void nested(const Region& inner, const std::vector<ValueId>& arguments) {
    const std::size_t outer = scope_.size();
    for (ValueId id : arguments) define(id);
    region(inner);
    for (std::size_t i = outer; i < scope_.size(); ++i) state_[scope_[i]] = State::gone;
    scope_.resize(outer);
  }

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

  // --- operations

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
    }
    check(false, "no such builtin");
  }
  void operation(const ParamRef& op, const Instr& instr) const {
    check(op.index >= 0 && static_cast<std::size_t>(op.index) < program_.params.size(),
          "the parameter is out of range");
    expect(instr, uniform(program_.params[static_cast<std::size_t>(op.index)].type));
  }

  // `type` is that of the loaded or stored value, `elem` and `alignment` those of the memory.
  void access(const Address& at, ValueId mask, const Type& type, DType elem, int alignment) const {
    check(use(at.base) == uniform(DType::i64), "an address is a uniform i64");
    if (at.offset != kNoValue)
      check(use(at.offset) == lane(DType::i32), "an address's offset is a lane i32");
    check(type.shape != Shape::fragment && type.elem == elem,
          "the value is not of the memory's type");
    check(power_of_two(at.group) && at.group <= kWarpWidth, "a group is a power of two up to 32");
    check(power_of_two(type.width), "the width of an access is a power of two");
    check(type.width * size_of(elem) <= kMaxAccessBytes, "an access is wider than 16 bytes");
    check(at.group == kWarpWidth || at.stride % type.width == 0,
          "the stride misaligns a wide access");
    if (at.step != kNoValue) {
      check(use(at.step) == uniform(DType::i64), "a step between groups is a uniform i64");
      check(at.group < kWarpWidth && at.stride == 0, "a step stands in the place of a stride");
    }
    if (mask != kNoValue) {
      const Type& lanes = use(mask);
      check(lanes == lane(DType::boolean) || lanes == uniform(DType::boolean),
            "a mask is a boolean of width 1");
      check(type.shape == Shape::lane || lanes.shape == Shape::uniform,
            "a uniform load has a uniform mask");
    }
    if (const Const* base = constant_[at.base]) {
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
    check(index >= 0 && static_cast<std::size_t>(index) < launch_->shared.size(),
          "the shared array is out of range");
    return launch_->shared[static_cast<std::size_t>(index)];
  }
  const Type& stored(ValueId value) const {
    const Type& type = use(value);
    check(type.shape == Shape::lane, "a store takes a lane value");
    return type;
  }
  void operation(const Load& op, const Instr& instr) const {
    const Buffer& from = buffer(op.buffer);
    check(op.at.offset == kNoValue, "lanes' own offsets are for shared arrays");
    check(op.ahead == 0 || op.mask == kNoValue, "what is read ahead is whole rows");
    access(op.at, op.mask, result(instr), from.type, from.alignment);
  }
  void operation(const Store& op, const Instr& instr) const {
    no_result(instr);
    const Buffer& to = buffer(op.buffer);
    check(to.role != BufferRole::input, "an input is never written");
    check(op.at.offset == kNoValue || (use(op.value).width == 1 && op.at.step == kNoValue),
          "lanes' own offsets are for shared arrays and for single elements");
    access(op.at, op.mask, stored(op.value), to.type, to.alignment);
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
      check(use(id).shape != Shape::fragment,
            "elementwise operations take no fragments; extract first");
      lanes = lanes || use(id).shape == Shape::lane;
      width = std::max(width, use(id).width);
    }
    const DType elem = use(op.operands.back()).elem;
    for (std::size_t i = 0; i < op.operands.size(); ++i) {
      const Type& type = use(op.operands[i]);
      check(type.width == 1 || type.width == width, "operands of different widths");
      const bool condition = op.op == Op::select && i == 0;
      check(type.elem == (condition ? DType::boolean : elem), "operands of different types");
    }
    if (!is_defined(op.op, elem)) fail(fmt::format("not defined on {}", name_of(elem)));
    const Type& type = result(instr);
    const DType computed = op.op == Op::convert                             ? type.elem
                           : is_comparison(op.op) || op.op == Op::is_finite ? DType::boolean
                                                                            : elem;
    expect(instr,
           {.elem = computed, .shape = lanes ? Shape::lane : Shape::uniform, .width = width});
  }
  void operation(const Splat& op, const Instr& instr) const {
    const Type& type = use(op.value);
    check(type.shape == Shape::uniform, "only uniform values are splatted");
    expect(instr, lane(type.elem, type.width));
  }
  void operation(const Extract& op, const Instr& instr) const {
    const Type& from = use(op.value);
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
      const Type& type = use(id);
      check(type.shape != Shape::fragment, "fragments are not concatenated; pack instead");
      check(type.elem == use(op.parts[0]).elem, "parts of different types");
      lanes = lanes || type.shape == Shape::lane;
      width += type.width;
    }
    expect(instr, {.elem = use(op.parts[0]).elem,
                   .shape = lanes ? Shape::lane : Shape::uniform,
                   .width = static_cast<std::int16_t>(width)});
  }
  void operation(const Shuffle& op, const Instr& instr) const {
    check(use(op.value).shape == Shape::lane, "only lane values are shuffled");
    if (op.kind != ShuffleKind::from_lane) {
      check(op.mask >= 0 && op.mask < kWarpWidth && op.source == kNoValue,
            "the mask is 0 to 31, without a source");
    } else {
      check(op.source != kNoValue, "the shuffle names no source");
      check(use(op.source) == lane(DType::i32) || use(op.source) == uniform(DType::i32),
            "the source is an i32");
    }
    expect(instr, use(op.value));
  }
  void operation(const Permute& op, const Instr& instr) const {
    check(use(op.value).shape == Shape::lane, "only lane values are permuted");
    check(op.source.size() == kWarpWidth, "a permutation names 32 lanes");
    for (std::uint8_t source : op.source)
      check(source < kWarpWidth, "a permutation names a lane beyond 31");
    expect(instr, use(op.value));
  }
  void operation(const Vote& op, const Instr& instr) const {
    check(use(op.value) == lane(DType::boolean), "a vote is over a lane boolean");
    expect(instr, uniform(DType::boolean));
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
      check(use(id).shape != Shape::fragment && use(id).elem == type.elem,
            "a piece is not of the fragment's element type");
      width += use(id).width;
    }
    check(width == type.width, "the pieces do not fill the fragment");
  }
  void operation(const Mma& op, const Instr& instr) const {
    const Type& type = result(instr);
    row_of(type);
    check(use(op.a) == fragment(type.mma_row, Operand::a), "A is not this row's A fragment");
    check(use(op.b) == fragment(type.mma_row, Operand::b), "B is not this row's B fragment");
    check(use(op.c) == fragment(type.mma_row, Operand::c), "C is not this row's C fragment");
    expect(instr, use(op.c));
  }
  void operation(const Barrier&, const Instr& instr) const { no_result(instr); }

  void index_of_copy(ValueId id) const {
    check(use(id) == uniform(DType::i64), "places and numbers of copies are uniform i64");
  }
  void slot_of_ring(int ring, ValueId slot) const {
    check(ring >= 0 && static_cast<std::size_t>(ring) < launch_->rings.size(),
          "the ring is out of range");
    index_of_copy(slot);
  }
  void operation(const Misalignment& op, const Instr& instr) const {
    check(power_of_two(op.unit) && op.unit >= size_of(buffer(op.buffer).type),
          "a boundary's unit is a power of two of at least an element");
    index_of_copy(op.first);
    expect(instr, uniform(DType::i64));
  }
  void operation(const CopyAsync& op, const Instr& instr) const {
    no_result(instr);
    const Buffer& from = buffer(op.buffer);
    check(from.role == BufferRole::input, "only inputs are copied");
    check(!program_.in_place || op.begin != kNoValue,
          "a copy of a program in place says where what it touches begins");
    check(array(op.array).type == from.type, "a copy does not convert");
    check(op.elements > 0 && op.elements * size_of(from.type) % kMaxAccessBytes == 0,
          "a copy is of whole units of 16 bytes");
    check(power_of_two(op.unit) && op.unit >= kMaxAccessBytes,
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
      check(use(id).shape != Shape::fragment && use(id).width == 1,
            "a slot carries single elements");
    }
    for (const ValueId id : {op.slot, op.ticket})
      check(use(id) == uniform(DType::i64), "slots and tickets are uniform i64");
  }
  void operation(const Await& op, const Instr& instr) const {
    slots(op.flags, instr.results);
    for (const ValueId id : instr.results)
      check(program_.values[id] == lane(program_.values[id].elem), "slots give an element a lane");
    for (const ValueId id : {op.first, op.count, op.ticket, op.publisher, op.stride})
      check(use(id) == uniform(DType::i64), "slots and tickets are uniform i64");
  }

  void yields_match(const Region& region, const Instr& instr) const {
    check(region.yields.size() == instr.results.size(), "a region yields one value a result");
    for (std::size_t i = 0; i < region.yields.size(); ++i) {
      check(region.yields[i] < program_.values.size(), "an operand has no type");
      check(program_.values[region.yields[i]] == program_.values[instr.results[i]],
            fmt::format("yielded %{} is not of its result's type", region.yields[i]));
    }
  }
  void operation(const For& op, const Instr& instr) {
    for (ValueId id : {op.lo, op.hi, op.step}) {
      check(use(id) == uniform(DType::i64), "loop bounds are uniform i64");
    }
    check(op.index < program_.values.size(), "the loop's index has no type");
    check(program_.values[op.index] == uniform(DType::i64), "a loop's index is a uniform i64");
    check(op.init.size() == instr.results.size() && op.carried.size() == instr.results.size(),
          "a loop carries one value a result");
    for (std::size_t i = 0; i < op.init.size(); ++i) {
      check(op.carried[i] < program_.values.size(), "a carried value has no type");
      const Type& type = program_.values[op.carried[i]];
      check(use(op.init[i]) == type && program_.values[instr.results[i]] == type,
            fmt::format("carried %{} differs in type from its start or result", op.carried[i]));
    }
    yields_match(op.body, instr);
    std::vector<ValueId> arguments = op.carried;
    arguments.push_back(op.index);
    nested(op.body, arguments);
  }
  void operation(const If& op, const Instr& instr) {
    check(use(op.condition) == uniform(DType::boolean), "a condition is a uniform boolean");
    yields_match(op.then_body, instr);
    yields_match(op.else_body, instr);
    nested(op.then_body, {});
    instr_ = &instr;
    nested(op.else_body, {});
  }

  const Program& program_;
  const Launch* launch_ = nullptr;
  const Instr* instr_ = nullptr;
  std::vector<State> state_;
  std::vector<const Const*> constant_;
  std::vector<ValueId> scope_;
};

}  // namespace

void verify(const Program& program) { Verifier(program).run(); }

}  // namespace chainfold::codegen
