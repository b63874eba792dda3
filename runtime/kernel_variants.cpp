// A kernel's variants: the plan of a segment size, compiled for an alignment.
#include "chainfold/codegen/choose/choose.hpp"
#include "chainfold/codegen/graph/queries.hpp"
#include "chainfold/codegen/plan/make.hpp"
#include "chainfold/codegen/plan/text.hpp"
#include "chainfold/runtime/host/roomy_thread.hpp"
#include "chainfold/runtime/jit/cpu_tiers.hpp"
#include "chainfold/runtime/kernel_state.hpp"
#include "chainfold/runtime/launch/variant.hpp"
#include "chainfold/runtime/tuning/autotune.hpp"

namespace chainfold {

Kernel::State::Choice Kernel::State::make_choice(const Shape& shape) const {
  const codegen::Graph& g = shape.tail ? *tail_graph : *graph;
  const codegen::PlanRequest best = request(shape, runtime::kWidestLoad);
  const bool pinned = !shape.tail && !options.plan.empty();
  // How long segments are is not known before a launch.
  const bool tunes = !shape.tail && !pinned && options.tuning != Tuning::off && !is_ragged(g);
  const runtime::TuningTask task{.graph = &g,
                                 .target = target,
                                 .device = device,
                                 .request = best,
                                 .elements = options.tuning_elements,
                                 .seconds = options.tuning_seconds,
                                 .on_progress = options.on_tuning};
  const auto choice_of = [](runtime::Tuned tuned) -> Choice {
    return {.plan = codegen::parse_choice(tuned.result.plan),
            .source = Source::tuned,
            .tuning = std::move(tuned.result),
            .kept = std::move(tuned.executable)};
  };
  // On this thread: a tuning calls the caller's on_tuning and uses the caller's threads.
  if (tunes && options.tuning == Tuning::measure) {
    if (std::optional<runtime::Tuned> tuned = runtime::tune(task))
      return choice_of(*std::move(tuned));
  }
  return runtime::roomy([&]() -> Choice {
    if (pinned) {
      return {.plan = runtime::pinned_choice(g, target, best, options.plan),
              .source = Source::pinned};
    }
    if (tunes && options.tuning == Tuning::cached) {
      if (auto found = runtime::find_tuning(task)) return choice_of({.result = *std::move(found)});
    }
    return {.plan = default_choice(g, target, best)};
  });
}

const Kernel::State::Choice& Kernel::State::choice(const Shape& shape) {
  ChoiceSlot* slot = nullptr;
  {
    const std::lock_guard lock(mutex);
    auto& entry = choices[shape];
    if (!entry) entry = std::make_unique<ChoiceSlot>();
    slot = entry.get();
  }
  std::call_once(slot->once, [&] { slot->choice = make_choice(shape); });
  return slot->choice;
}

runtime::Effort Kernel::State::least_effort() const {
  using runtime::Tiering;
  const bool tiered =
      device < 0 && options.tiered && runtime::tiering_of_process() != Tiering::optimised;
  return tiered ? runtime::Effort::baseline : runtime::Effort::optimised;
}

void Kernel::State::foresee(const Shape& shape) {
  const Choice& chosen = choice(shape);
  std::optional<codegen::Plan> plan = runtime::roomy(
      [&] { return make_plan(*graph, target, request(shape, runtime::kWidestLoad), chosen.plan); });
  const std::lock_guard lock(mutex);
  if (last.variant == nullptr) last = {.shape = shape, .choice = chosen, .plan = std::move(plan)};
}

const runtime::KernelVariant& Kernel::State::variant(const Shape& shape, int alignment) {
  std::atomic<const Slot*>& last_used = recent[shape.tail ? 1 : 0];
  const Slot* const same = last_used.load(std::memory_order_acquire);
  if (same != nullptr && same->alignment == alignment && same->shape == shape) return same->variant;
  Slot* slot = nullptr;
  {
    const std::lock_guard lock(mutex);
    auto& entry = variants[{shape, alignment}];
    if (!entry) {
      entry = std::make_unique<Slot>();
      entry->shape = shape;
      entry->alignment = alignment;
    }
    slot = entry.get();
  }
  std::call_once(slot->once, [&] {
    const codegen::Graph& g = shape.tail ? *tail_graph : *graph;
    Choice chosen = choice(shape);
    const codegen::PlanRequest wanted = request(shape, alignment);
    runtime::KernelVariant fresh = runtime::roomy([&] {
      if (chosen.source == Source::pinned) {
        chosen.plan = runtime::pinned_choice(g, target, wanted, options.plan);
      } else {
        chosen.plan = codegen::choice_for_alignment(g, target, wanted, chosen.plan);
      }
      return runtime::load_variant(g, target, device, wanted, chosen.plan, least_effort());
    });
    const std::lock_guard lock(mutex);
    ++(fresh.reused                    ? stats.reused
       : fresh.executable->from_disk() ? stats.from_disk
                                       : stats.compiled);
    if (!fresh.reused) stats.compile_ms += fresh.executable->compile_ms();
    slot->variant = std::move(fresh);
    slot->choice = std::move(chosen);
    if (!shape.tail) last = last_of(*slot);
  });
  last_used.store(slot, std::memory_order_release);
  return slot->variant;
}

Kernel::State::Last Kernel::State::last_of(const Slot& slot) {
  return {.shape = slot.shape,
          .choice = slot.choice,
          .plan = slot.variant.compiled.plan,
          .variant = &slot.variant};
}

void Kernel::State::tell_of(const Shape& shape, int alignment) {
  const std::lock_guard lock(mutex);
  last = last_of(*variants.at({shape, alignment}));
}

}  // namespace chainfold
