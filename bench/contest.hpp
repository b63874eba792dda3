// The parts of a machine that the suites `reduce` and `scan` need: its ceilings, and all the ways
// in which a case can be computed there, ready to be timed side by side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chainfold/bench/cases.hpp"
#include "chainfold/bench/reference.hpp"
#include "chainfold/bench/report.hpp"

namespace chainfold::bench {

/// Ours by the plan of "chainfold chosen", but with NonFinite::assume_finite: what containing NaN
/// and infinities costs is the difference.
inline constexpr const char* kFiniteImpl = "chainfold-finite";

/// One way to compute a case.
struct Way {
  std::string impl;      ///< "chainfold", kFiniteImpl, or the peer
  std::string kind;      ///< of ours: "chosen", "tuned", "forced" or "pinned"; empty for peers
  std::string strategy;  ///< where forced the first word of the plans it may take, pinned: its plan
  /// Ours with Accuracy::as_published and in any order of additions, as the papers have it.
  bool as_published = false;
  /// Ours with NonFinite::assume_finite, as published scans need it.
  bool finite = false;

  [[nodiscard]] bool ours() const { return impl.starts_with("chainfold"); }
  /// "chainfold chosen", "chainfold forced parts", "cub": what --impl and --energy match.
  [[nodiscard]] std::string name() const;
};

/// A way that was prepared: its results were checked, or it has none.
struct Entrant {
  Way way;
  std::string plan;       ///< what Kernel::plan() tells, or what is called
  std::string missing{};  ///< why it cannot be timed; empty if it can
  bool wrong = false;     ///< it gave wrong results (told in `missing`)
  std::optional<Deviation> off{};
};
/// The entrant for a way that `load` compiles and checks, filling in plan and deviation. What it
/// throws is why the entrant is missing.
Entrant make_entrant(const Way& way, const std::function<void(Entrant&)>& load);

struct Timing {
  double ms = 0;  ///< median
  std::size_t repeats = 0;
};

/// In picojoules an input element.
struct Energy {
  double pj = 0;
  double ceilings_pj = 0;  ///< of the ceilings' reads and copies that move as many bytes
};

/// The ways of one case, compiled and checked, with their memory.
class Contest {
 public:
  virtual ~Contest() = default;
  [[nodiscard]] virtual const std::vector<Entrant>& entrants() const = 0;
  /// Times all entrants that are not missing, interleaved; result i belongs to entrant i. About
  /// `seconds` go to each.
  virtual std::vector<Timing> time(double seconds) = 0;
  /// The ceilings among the repeats of the last timing, where a machine moves so fast that those
  /// before and after tell little.
  [[nodiscard]] virtual std::optional<Ceilings> ceilings() const { return std::nullopt; }
  /// Energy of the device, over a loop of a second or more throughout which it is busy; nothing
  /// where the machine does not tell.
  virtual std::optional<Energy> energy(std::size_t entrant) = 0;
};

/// How far the prefixes of a peer's scan may be off, in units of f32 (of f64 for f64) times the sum
/// of absolute values; `roundings` of them to the output's type. What goes from tile to tile adds
/// up to less by far where signs are random.
double peer_scan_bound_u(const Case& test, int roundings);

class Machine {
 public:
  virtual ~Machine() = default;
  /// Measured now, alone: of the memory, or of the caches for a case that is to be found there.
  virtual Ceilings ceilings(const Case& test) = 0;
  /// What a case could be computed by here, ours first; nothing is compiled yet.
  virtual std::vector<Way> ways(const Case& test) = 0;
  /// Compiles and checks some of these ways. A way that fails is an entrant that says why.
  virtual std::unique_ptr<Contest> prepare(const Case& test, const std::vector<Way>& ways) = 0;
};

/// How our plans are chosen and forced, the same on every machine.
class OurPlans {
 public:
  OurPlans(const Target& target, bool tune) : target_(target), tune_(tune) {}
  /// Chosen, tuned where asked for, and forced to each other strategy that the space of plans has:
  /// within the accuracy that is promised or, where it has none there, as published. Some cases
  /// also without containing what is not finite.
  [[nodiscard]] std::vector<Way> ways(const Case& test) const;
  /// Compiles a case for one of them. A strategy's plan is its first in the space of plans, or,
  /// where a tuning has timed them, its fastest. Throws what cf::compile throws.
  [[nodiscard]] Kernel compile(const Case& test, const Way& way) const;
  /// How far results of a kernel that compile() made for this way may be off: what its plan
  /// promises, or as published, what follows from the roundings on their way.
  [[nodiscard]] double bound_u(const Case& test, const Way& way, const Kernel& kernel) const;

 private:
  [[nodiscard]] std::vector<std::string> plans_of(const Case& test, bool as_published) const;
  [[nodiscard]] std::string best_of(const Case& test, const Way& way) const;
  Target target_;
  bool tune_;
};

}  // namespace chainfold::bench
