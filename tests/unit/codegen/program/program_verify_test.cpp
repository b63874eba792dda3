#include <functional>
#include <ostream>
#include <string>

#include <gtest/gtest.h>

#include "chainfold/codegen/base/error.hpp"
#include "chainfold/codegen/program/builder.hpp"
#include "chainfold/codegen/program/print.hpp"
#include "chainfold/codegen/program/program.hpp"
#include "chainfold/codegen/program/verify.hpp"

namespace chainfold::codegen {
namespace {

constexpr int kRow = 0;  // m16n8k16.f32.f16

// A correct program with every kind of instruction, for the cases below to break in one place each.
Program sound_program() {
  Program program;
  program.name = "sound";
  program.buffers = {{"x", DType::f16, BufferRole::input, 0, 16, {}},
                     {"y", DType::f32, BufferRole::output, 0, 16, {}},
                     {"tmp", DType::f32, BufferRole::scratch, 0, 16, SizeExpr(64)}};
  program.params = {{"segments", DType::i64, ParamRole::segments, 0}};
  Launch launch;
  launch.name = "first";
  launch.grid = SizeExpr::param(0, "segments");
  launch.warps = 2;
  launch.shared = {{"cells", DType::f32, 64}, {"stage", DType::f16, 64}};
  launch.rings = {{"stage", 2}};
  program.launches.push_back(launch);
  Builder b(program);
  const ValueId base = b.mul(b.block(), b.i64(256));
  const ValueId x = b.load(0, {base}, 8, b.lt(b.lane(), b.i32(20)));
  const ValueId ones = b.const_fragment(kRow, Operand::a, {MatrixKind::ones, 0, 8, 1});
  const ValueId data = b.pack(kRow, Operand::b, {{b.extract(x, 4, 2), 0}, {kNoValue, 2}});
  const ValueId zero = b.const_fragment(kRow, Operand::c, {MatrixKind::zeros});
  ValueId sum = b.extract(b.mma(ones, data, zero), 0);
  sum = b.add(sum, b.shuffle_xor(sum, 1));
  sum = b.add(sum, b.shuffle_from(sum, b.lane()));
  std::vector<std::uint8_t> turn;
  for (int l = 0; l < kWarpWidth; ++l)
    turn.push_back(static_cast<std::uint8_t>((l + 1) % kWarpWidth));
  sum = b.permute(sum, turn);
  const ValueId wide = b.concat({sum, sum, b.splat(b.constant(DType::f32, 0)), sum});
  sum = b.add(sum, b.extract(wide, 2));
  const ValueId some = b.any(b.lt(b.lane(), b.i32(3)));
  const ValueId at = b.mul(b.convert(b.warp(), DType::i64), b.i64(32));
  b.shared_store(0, {at}, sum);
  const ValueId slot = b.convert(b.warp(), DType::i64);
  b.copy_async({.buffer = 0,
                .first = base,
                .unit = 128,
                .array = 1,
                .to = b.mul(slot, b.i64(32)),
                .elements = 32,
                .limit = base,
                .ring = 0,
                .slot = slot});
  b.copy_wait(0, slot, b.misalignment(0, base, 128));
  b.barrier();
  sum = b.shared_load(0, {b.i64(0)});
  sum = b.loop(b.i64(0), b.param(0), b.i64(1), {sum}, [&](ValueId, const Builder::Values& carried) {
    return Builder::Values{b.select(b.lt(b.lane(), b.i32(7)), carried[0], sum)};
  })[0];
  sum = b.branch(
      some, [&] { return Builder::Values{b.compute(Op::neg, {sum})}; },
      [&] { return Builder::Values{sum}; })[0];
  b.store(1, {b.mul(b.block(), b.i64(32))}, sum, b.lt(b.lane(), b.i32(1)));
  return program;
}

template <class T>
Instr* find(Region& region) {
  for (Instr& instr : region.body) {
    if (std::holds_alternative<T>(instr.op)) return &instr;
    Instr* inner = nullptr;
    for_each_region(instr.op,
                    [&](Region& nested) { inner = inner != nullptr ? inner : find<T>(nested); });
    if (inner != nullptr) return inner;
  }
  return nullptr;
}
template <class T>
Instr& first(Program& program) {
  Instr* found = find<T>(program.launches[0].body);
  if (found == nullptr) throw std::logic_error("the sound program lacks this instruction");
  return *found;
}
template <class T>
T& op(Program& program) {
  return std::get<T>(first<T>(program).op);
}
template <class T>
Type& result_type(Program& program) {
  return program.values[first<T>(program).results[0]];
}
ValueId add_value(Program& program, const Type& type) {
  program.values.push_back(type);
  return static_cast<ValueId>(program.values.size() - 1);
}
// A value of `type` at the start of the body, made by `operation`.
ValueId prepend(Program& program, const Type& type, Operation operation) {
  const ValueId id = add_value(program, type);
  auto& body = program.launches[0].body.body;
  body.insert(body.begin(), Instr{std::move(operation), {id}});
  return id;
}

struct Broken {
  const char* name;
  const char* rule;  // part of the message
  std::function<void(Program&)> change;
};
std::ostream& operator<<(std::ostream& out, const Broken& broken) { return out << broken.name; }

class Verify : public testing::TestWithParam<Broken> {};

TEST(VerifySound, TheProgramPassesAndPrints) {
  const Program program = sound_program();
  ASSERT_NO_THROW(verify(program)) << print(program);
  const std::string text = print(program);
  EXPECT_NE(text.find("mma m16n8k16.f32.f16 %"), std::string::npos) << text;
  EXPECT_NE(text.find(": fragment<m16n8k16.f32.f16.c>"), std::string::npos) << text;
  EXPECT_NE(text.find("const_fragment ones of 8-wide loads, step 1"), std::string::npos) << text;
  EXPECT_EQ(text, print(sound_program()));
}

TEST_P(Verify, RefusesTheProgram) {
  Program program = sound_program();
  GetParam().change(program);
  try {
    verify(program);
    FAIL() << "accepted:\n" << print(program);
  } catch (const InternalError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find(GetParam().rule), std::string::npos) << message;
    EXPECT_EQ(error.dump(), print(program));
  }
}

const Broken kBroken[] = {
    // Declarations
    {"launch_name", "must be an identifier", [](Program& p) { p.launches[0].name = "1st"; }},
    {"launch_twice", "two launches have one name",
     [](Program& p) { p.launches.push_back({"first", SizeExpr(1), 1, 0, {}, {}}); }},
    {"warps", "1 to 32 warps", [](Program& p) { p.launches[0].warps = 33; }},
    {"strands", "a power of two", [](Program& p) { p.launches[0].streams.count = 3; }},
    {"strands_that_wait", "taken in order",
     [](Program& p) {
       p.launches[0].streams.count = 2;
       prepend(p, {.elem = DType::i64, .shape = Shape::uniform}, Ticket{0});
     }},
    {"min_blocks", "min_blocks", [](Program& p) { p.launches[0].min_blocks = -1; }},
    {"shared_size", "needs elements", [](Program& p) { p.launches[0].shared[0].elements = 0; }},
    {"size_type", "a size is an i64",
     [](Program& p) { p.params.push_back({"half", DType::i32, ParamRole::size}); }},
    {"size_of_itself", "parameters before it",
     [](Program& p) {
       p.params.push_back(
           {"twice", DType::i64, ParamRole::size, 0, SizeExpr::param(1, "twice") * 2});
     }},
    {"buffer_alignment", "alignment must be", [](Program& p) { p.buffers[0].alignment = 12; }},
    {"body_yields", "yields nothing",
     [](Program& p) { p.launches[0].body.yields = {first<Special>(p).results[0]}; }},
    {"type_width", "broken type", [](Program& p) { result_type<Load>(p).width = 0; }},
    {"fragment_row", "no row", [](Program& p) { result_type<Mma>(p).mma_row = 99; }},
    {"fragment_width", "does not fit its row", [](Program& p) { result_type<Mma>(p).width = 8; }},
    {"mask_of_elements", "memory that is accessed anywhere",
     [](Program& p) {
       auto& body = p.launches[0].body.body;
       const auto load = std::find_if(body.begin(), body.end(), [](const Instr& instr) {
         return std::holds_alternative<Load>(instr.op);
       });
       ValueId& mask = std::get<Load>(load->op).mask;
       const ValueId narrow = std::exchange(mask, add_value(p, lane(DType::boolean, 8)));
       body.insert(load, Instr{Concat{Builder::Values(8, narrow)}, {mask}});
     }},
    // Visibility
    {"defined_twice", "defined twice",
     [](Program& p) {
       auto& body = p.launches[0].body.body;
       body.push_back(body.front());
     }},
    {"used_before", "not visible",
     [](Program& p) {
       auto& body = p.launches[0].body.body;
       std::swap(body[0], body[2]);
     }},
    {"used_outside_region", "not visible",
     [](Program& p) { op<Store>(p).value = op<If>(p).then_body.yields[0]; }},
    {"used_across_launches", "not visible",
     [](Program& p) {
       const ValueId old = first<Load>(p).results[0];
       Launch second{"second", SizeExpr(1), 1, 0, {}, {}};
       second.body.body.push_back({Extract{old, 0}, {add_value(p, lane(DType::f16))}});
       p.launches.push_back(second);
     }},
    {"yield_outside", "not visible",
     [](Program& p) {
       const ValueId late = add_value(p, lane(DType::f32));
       op<For>(p).body.yields[0] = late;
     }},
    {"no_type", "no type", [](Program& p) { op<Store>(p).value = 100000; }},
    {"no_result", "has one result", [](Program& p) { first<Mma>(p).results.clear(); }},
    {"result_of_barrier", "has no result",
     [](Program& p) { first<Barrier>(p).results = {add_value(p, lane(DType::f32))}; }},
    // Scalars
    {"constant_bits", "beyond its type",
     [](Program& p) { prepend(p, uniform(DType::u8), Const{0x1ff}); }},
    {"constant_lane", "uniform scalar", [](Program& p) { prepend(p, lane(DType::u8), Const{1}); }},
    {"special_type", "should be uniform<i64>",
     [](Program& p) { prepend(p, uniform(DType::i32), Special{Builtin::block}); }},
    {"parameter_range", "out of range",
     [](Program& p) { prepend(p, uniform(DType::i64), ParamRef{1}); }},
    {"parameter_type", "should be uniform<i64>",
     [](Program& p) { prepend(p, uniform(DType::i32), ParamRef{0}); }},
    // Memory
    {"buffer_range", "buffer is out of range", [](Program& p) { op<Load>(p).buffer = 3; }},
    {"array_range", "shared array is out of range",
     [](Program& p) { op<SharedLoad>(p).array = -1; }},
    {"offset_of_buffer", "are for shared arrays",
     [](Program& p) { op<Load>(p).at.offset = first<Special>(p).results[0]; }},
    {"offset_type", "a lane i32 or i64",
     [](Program& p) { op<SharedLoad>(p).at.offset = first<Special>(p).results[0]; }},
    {"ring_range", "ring is out of range", [](Program& p) { op<CopyWait>(p).ring = 1; }},
    {"ring_slots", "a ring needs slots", [](Program& p) { p.launches[0].rings[0].slots = 0; }},
    {"copy_of_output", "only inputs are copied", [](Program& p) { op<CopyAsync>(p).buffer = 1; }},
    {"packed_floats", "bits are an input's booleans",
     [](Program& p) { p.buffers[0].packed = true; }},
    {"copy_type", "does not convert", [](Program& p) { op<CopyAsync>(p).array = 0; }},
    {"copy_elements", "whole units of 16 bytes",
     [](Program& p) { op<CopyAsync>(p).elements = 12; }},
    {"copy_unit", "boundary of at least 16", [](Program& p) { op<CopyAsync>(p).unit = 8; }},
    {"copy_place", "uniform i64",
     [](Program& p) {
       op<CopyAsync>(p).to = prepend(p, lane(DType::i32), Special{Builtin::lane});
     }},
    {"copy_limit", "uniform i64",
     [](Program& p) {
       op<CopyAsync>(p).limit = prepend(p, lane(DType::i32), Special{Builtin::lane});
     }},
    {"copy_in_place", "says where what it touches begins", [](Program& p) { p.in_place = true; }},
    {"copy_begin", "uniform i64",
     [](Program& p) {
       op<CopyAsync>(p).begin = prepend(p, lane(DType::i32), Special{Builtin::lane});
     }},
    {"misalignment_unit", "power of two", [](Program& p) { op<Misalignment>(p).unit = 24; }},
    {"store_to_input", "never written", [](Program& p) { op<Store>(p).buffer = 0; }},
    {"load_type", "not of the memory's type", [](Program& p) { p.buffers[0].type = DType::bf16; }},
    {"group", "group is a power of two", [](Program& p) { op<Load>(p).at.group = 12; }},
    {"group_too_large", "group is a power of two", [](Program& p) { op<Load>(p).at.group = 64; }},
    {"step_of_one_group", "in the place of a stride",
     [](Program& p) { op<Load>(p).at.step = op<Load>(p).at.base; }},
    {"stride", "stride misaligns",
     [](Program& p) { op<Load>(p).at = {op<Load>(p).at.base, 4, 30}; }},
    {"access_width", "width of an access", [](Program& p) { result_type<Load>(p).width = 6; }},
    {"access_bytes", "wider than 16 bytes", [](Program& p) { result_type<Load>(p).width = 16; }},
    {"base_type", "uniform i64",
     [](Program& p) {
       op<Load>(p).at.base = prepend(p, lane(DType::i32), Special{Builtin::lane});
     }},
    {"mask_type", "mask is a boolean", [](Program& p) { op<Load>(p).mask = op<Load>(p).at.base; }},
    {"uniform_load_mask", "uniform mask",
     [](Program& p) {
       const ValueId base = prepend(p, uniform(DType::i64), Special{Builtin::block});
       const ValueId result = add_value(p, uniform(DType::f16));
       auto& body = p.launches[0].body.body;
       body.push_back({Load{0, {base}, op<Store>(p).mask}, {result}});
     }},
    {"constant_misaligned", "constant place is not aligned",
     [](Program& p) { op<Load>(p).at.base = prepend(p, uniform(DType::i64), Const{4}); }},
    {"buffer_too_loose", "constant place is not aligned",
     [](Program& p) {
       op<Load>(p).at.base = prepend(p, uniform(DType::i64), Const{8});
       p.buffers[0].alignment = 8;
     }},
    {"shared_store_uniform", "lanes store lane values",
     [](Program& p) { op<SharedStore>(p).value = prepend(p, uniform(DType::f32), Const{0}); }},
    {"store_uniform_streams", "one place, in memory that is cached",
     [](Program& p) {
       op<Store>(p).value = prepend(p, uniform(DType::f32), Const{0});
       op<Store>(p).streams = true;
     }},
    {"store_uniform_mask", "uniform mask",
     [](Program& p) {
       const DType elem = p.buffers[static_cast<std::size_t>(op<Store>(p).buffer)].type;
       op<Store>(p).value = prepend(p, uniform(elem), Const{0});
     }},
    // Elementwise
    {"operand_count", "number of operands", [](Program& p) { op<Compute>(p).operands.pop_back(); }},
    {"operand_types", "different types",
     [](Program& p) {
       op<Compute>(p).operands[0] = prepend(p, uniform(DType::i32), Special{Builtin::warp});
     }},
    {"operand_widths", "different widths",
     [](Program& p) {
       const ValueId x = first<Load>(p).results[0];
       auto& body = p.launches[0].body.body;
       const ValueId four = add_value(p, lane(DType::f16, 4));
       body.push_back({Extract{x, 0}, {four}});
       body.push_back(
           {Compute{Op::select, {op<Load>(p).mask, x, four}}, {add_value(p, lane(DType::f16, 8))}});
     }},
    {"operand_fragment", "no fragments",
     [](Program& p) {
       const ValueId sum = first<Mma>(p).results[0];
       p.launches[0].body.body.push_back(
           {Compute{Op::neg, {sum}}, {add_value(p, fragment(kRow, Operand::c))}});
     }},
    {"undefined_operation", "not defined on f16",
     [](Program& p) {
       const ValueId x = first<Load>(p).results[0];
       p.launches[0].body.body.push_back(
           {Compute{Op::neg, {x}}, {add_value(p, lane(DType::f16, 8))}});
     }},
    {"result_shape", "should be uniform<i64>",
     [](Program& p) { result_type<Compute>(p).shape = Shape::lane; }},
    {"comparison_type", "should be lane<bool>",
     [](Program& p) {
       const ValueId lanes = prepend(p, lane(DType::i32), Special{Builtin::lane});
       auto& body = p.launches[0].body.body;
       body.push_back({Compute{Op::lt, {lanes, lanes}}, {add_value(p, lane(DType::i32))}});
     }},
    {"splat_lane", "only uniform values",
     [](Program& p) { op<Splat>(p).value = first<Load>(p).results[0]; }},
    {"extract_range", "out of range", [](Program& p) { op<Extract>(p).first = 7; }},
    {"extract_a_fragment", "only C fragments",
     [](Program& p) {
       p.launches[0].body.body.push_back(
           {Extract{op<Mma>(p).a, 0}, {add_value(p, lane(DType::f16))}});
     }},
    {"concat_types", "parts of different types",
     [](Program& p) { op<Concat>(p).parts[1] = first<Load>(p).results[0]; }},
    {"concat_width", "should be lane<f32 x 3>", [](Program& p) { op<Concat>(p).parts.pop_back(); }},
    // Lanes
    {"shuffle_mask", "0 to 31", [](Program& p) { op<Shuffle>(p).mask = 32; }},
    {"shuffle_source", "names no source",
     [](Program& p) { op<Shuffle>(p).kind = ShuffleKind::from_lane; }},
    {"shuffle_uniform", "only lane values",
     [](Program& p) { op<Shuffle>(p).value = prepend(p, uniform(DType::f32), Const{0}); }},
    {"permute_count", "names 32 lanes", [](Program& p) { op<Permute>(p).source.pop_back(); }},
    {"permute_range", "beyond 31", [](Program& p) { op<Permute>(p).source[3] = 32; }},
    {"permute_range_of_two", "beyond 63",
     [](Program& p) {
       op<Permute>(p).other = op<Permute>(p).value;
       op<Permute>(p).source[3] = 64;
     }},
    {"permute_types", "of two types",
     [](Program& p) { op<Permute>(p).other = first<Load>(p).results[0]; }},
    {"funnel_words", "of words of narrower",
     [](Program& p) {
       const ValueId wide = first<Load>(p).results[0];
       p.launches[0].body.body.push_back(
           {Funnel{wide, wide, wide}, {add_value(p, lane(DType::f16, 8))}});
     }},
    {"vote_type", "lane boolean",
     [](Program& p) { op<Vote>(p).value = first<Load>(p).results[0]; }},
    // Matrices
    {"constant_b", "only A fragments",
     [](Program& p) {
       op<ConstFragment>(p).matrix.step = 0;
       p.launches[0].body.body.push_back({ConstFragment{{MatrixKind::band, 3, 8, 0}},
                                          {add_value(p, fragment(kRow, Operand::b))}});
     }},
    {"constant_step", "beyond what a lane loads",
     [](Program& p) { op<ConstFragment>(p).matrix.step = 2; }},
    {"constant_length", "positive length",
     [](Program& p) { op<ConstFragment>(p).matrix.kind = MatrixKind::segments; }},
    {"pack_width", "do not fill", [](Program& p) { op<Pack>(p).pieces.back().second = 4; }},
    {"pack_type", "element type",
     [](Program& p) { op<Pack>(p).pieces[0].first = first<Special>(p).results[0]; }},
    {"mma_operands", "A is not", [](Program& p) { std::swap(op<Mma>(p).a, op<Mma>(p).b); }},
    {"mma_row", "B is not",
     [](Program& p) {
       const ValueId other =
           prepend(p, fragment(1, Operand::b), ConstFragment{{MatrixKind::zeros}});
       op<Mma>(p).b = other;
     }},
    // Control
    {"loop_bound", "bounds are of its index's type",
     [](Program& p) { op<For>(p).hi = prepend(p, uniform(DType::i32), Special{Builtin::warp}); }},
    {"loop_index", "bounds are of its index's type",
     [](Program& p) { p.values[op<For>(p).index] = uniform(DType::i32); }},
    {"loop_index_type", "index is a uniform",
     [](Program& p) { p.values[op<For>(p).index] = uniform(DType::u32); }},
    {"loop_carried", "differs in type",
     [](Program& p) { p.values[op<For>(p).carried[0]] = lane(DType::f64); }},
    {"loop_count", "carries one value", [](Program& p) { op<For>(p).init.clear(); }},
    {"loop_yields", "yields one value", [](Program& p) { op<For>(p).body.yields.clear(); }},
    {"branch_condition", "condition is a uniform",
     [](Program& p) { op<If>(p).condition = op<Load>(p).mask; }},
    {"reinterpret_size", "no such cast of i32 to i64",
     [](Program& p) {
       const ValueId warp = prepend(p, uniform(DType::i32), Special{Builtin::warp});
       const ValueId wide = add_value(p, uniform(DType::i64));
       auto& body = p.launches[0].body.body;
       body.insert(body.begin() + 1, Instr{Compute{Op::reinterpret, {warp}}, {wide}});
     }},
    {"branch_yields", "yields one value", [](Program& p) { op<If>(p).else_body.yields.clear(); }},
    {"branch_types", "not of its result's type",
     [](Program& p) { op<If>(p).else_body.yields[0] = op<If>(p).condition; }},
    {"barrier_in_branch", "warps of a block may differ",
     [](Program& p) { op<If>(p).then_body.body.push_back({Barrier{}, {}}); }},
    {"barrier_in_loop", "warps of a block may differ",
     [](Program& p) {
       const ValueId warp = prepend(p, uniform(DType::i32), Special{Builtin::warp});
       const ValueId hi = add_value(p, uniform(DType::i64));
       auto& body = p.launches[0].body.body;
       body.insert(body.begin() + 1, Instr{Compute{Op::convert, {warp}}, {hi}});
       op<For>(p).hi = hi;
       op<For>(p).body.body.push_back({Barrier{}, {}});
     }},
};
INSTANTIATE_TEST_SUITE_P(Rules, Verify, testing::ValuesIn(kBroken),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST(VerifyBarriers, PassUnderConditionsThatABlockShares) {
  Program program = sound_program();
  auto& loop = std::get<For>(find<For>(program.launches[0].body)->op);
  loop.body.body.push_back({Barrier{}, {}});
  EXPECT_NO_THROW(verify(program));
}

// The loop's second round sees a carried bound that depends on the warp.
TEST(VerifyBarriers, CarriedValuesAreFollowedAroundTheLoop) {
  Program program;
  program.name = "carried";
  program.launches.push_back({"first", SizeExpr(1), 2, 0, {}, {}});
  Builder b(program);
  const ValueId warp = b.convert(b.warp(), DType::i64);
  b.loop(b.i64(0), b.i64(4), b.i64(1), {b.i64(1)}, [&](ValueId, const Builder::Values& outer) {
    b.loop(b.i64(0), outer[0], b.i64(1), {}, [&](ValueId, const Builder::Values&) {
      b.barrier();
      return Builder::Values{};
    });
    return Builder::Values{b.add(outer[0], warp)};
  });
  EXPECT_THROW(verify(program), InternalError);
}

}  // namespace
}  // namespace chainfold::codegen
