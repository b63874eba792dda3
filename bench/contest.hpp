// The parts of a machine that the suite `reduce` needs: its ceilings, and all the ways in which a
// case can be computed there, ready to be timed side by side.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "chainfold/bench/cases.hpp"
#include "chainfold/bench/report.hpp"

namespace chainfold::bench {

/// One way to compute a case.
struct Way {
  std::string impl;      ///< "chainfold", or the peer
  std::string kind;      ///< of ours: "chosen", "tuned" or "forced"; empty for peers
  std::string strategy;  ///< of ours where forced: the first word of the plans it may take

  [[nodiscard]] bool ours() const { return impl == "chainfold"; }
  /// "chainfold chosen", "chainfold forced parts", "cub": what --impl and --energy match.
  [[nodiscard]] std::string name() const;
};

/// A way that was prepared: its results were checked, or it has none.
struct Entrant {
  Way way;
  std::string plan;       ///< what Kernel::plan() tells, or what is called
  std::string missing{};  ///< why it cannot be timed; empty if it can
  bool wrong = false;     ///< it gave wrong results (told in `missing`)
  std::optional<double> max_err_u{};
};

struct Timing {
  double ms = 0;  ///< median
  std::size_t repeats = 0;
};

/// The ways of one case, compiled and checked, with their memory.
class Contest {
 public:
  virtual ~Contest() = default;
  [[nodiscard]] virtual const std::vector<Entrant>& entrants() const = 0;
  /// Times all entrants that are not missing, interleaved; result i belongs to entrant i. About
  /// `seconds` go to each.
  virtual std::vector<Timing> time(double seconds) = 0;
  /// Energy of the device in picojoules an input element, over a loop of a second or more; nothing
  /// where the machine does not tell.
  virtual std::optional<double> picojoules(std::size_t entrant) = 0;
};

class Machine {
 public:
  virtual ~Machine() = default;
  /// Measured now, alone.
  virtual Ceilings ceilings() = 0;
  /// What a case could be computed by here, ours first; nothing is compiled yet.
  virtual std::vector<Way> ways(const Case& test) = 0;
  /// Compiles and checks some of these ways. A way that fails is an entrant that says why.
  virtual std::unique_ptr<Contest> prepare(const Case& test, const std::vector<Way>& ways) = 0;
};

/// How our plans are chosen and forced, the same on every machine.
class OurPlans {
 public:
  OurPlans(const Target& target, bool tune) : target_(target), tune_(tune) {}
  /// Chosen, tuned where asked for, and forced to each other strategy that the space of plans has.
  [[nodiscard]] std::vector<Way> ways(const Case& test) const;
  /// Compiles a case for one of them. A strategy's plan is its first in the space of plans, or,
  /// where a tuning has timed them, its fastest. Throws what cf::compile throws.
  [[nodiscard]] Kernel compile(const Case& test, const Way& way) const;

 private:
  [[nodiscard]] std::string best_of(const Case& test, const std::string& strategy) const;
  Target target_;
  bool tune_;
};

}  // namespace chainfold::bench
