#include "chainfold/bench/suite_reduce.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>

namespace chainfold::bench {
namespace {

using Clock = std::chrono::steady_clock;

Row new_row(const NamedCase& named, const Way& way, const Timing& timing,
            const Ceilings& ceilings) {
  Row row = make_row(named.test, way.impl, timing.ms, timing.repeats, ceilings);
  row.plan_kind = way.kind;
  row.plan = way.strategy;
  if (!named.experiment.empty()) {
    row.experiment = named.experiment;
    row.data = name_of(named.test.source);
  }
  return row;
}

Row row_of(const NamedCase& named, const Entrant& entrant, const Timing& timing,
           const Ceilings& ceilings) {
  Row row = new_row(named, entrant.way, timing, ceilings);
  row.plan = entrant.plan;
  if (!entrant.missing.empty()) {
    row.missing = entrant.missing;
    row.ms = 0;
    row.gbps = row.ceiling_ms = row.ratio = std::nullopt;
  } else if (is_float(named.test.out) && entrant.off) {
    row.overflow = entrant.off->overflow;
    if (row.overflow) return row;
    row.max_err_u = entrant.off->units;
    if (named.test.segments() == 1) row.err_percent = entrant.off->percent;
  }
  return row;
}

Row identity(const NamedCase& named, const Way& way) {
  return new_row(named, way, {1, 1}, Ceilings(1, 1, 2));
}

std::string line_of(const Row& row, const std::string& name) {
  const std::string ours = row.plan_kind + ' ' + row.plan.substr(0, row.plan.find(' '));
  const std::string who = row.impl != "chainfold"     ? row.impl
                          : row.plan_kind == "pinned" ? row.plan
                                                      : "ours " + ours;
  if (!row.missing.empty())
    return fmt::format("  {:<24} {:<20} missing: {}", name, who,
                       row.missing.substr(0, row.missing.find('\n')));
  const auto number = [](const std::optional<double>& value, const char* format) {
    return value ? fmt::format(fmt::runtime(format), *value) : std::string("-");
  };
  const char* const mark = row.is_void ? "  VOID" : row.overflow ? "  OVERFLOW" : "";
  return fmt::format(
      "  {:<24} {:<20} {:>10.4f} ms {:>8} GB/s {:>6} of the ceiling  err {:>8} u{}{}", name, who,
      row.ms, number(row.gbps, "{:.1f}"), number(row.ratio, "{:.3f}"),
      number(row.max_err_u, "{:.3g}"),
      row.pj_per_element ? fmt::format("  {:.0f} pJ (the ceilings {:.0f})", *row.pj_per_element,
                                       *row.ceilings_pj_per_element)
                         : "",
      mark);
}

/// Our fastest row that needs no forcing beside the fastest peer.
void note_loss(const std::string& name, const std::vector<Row>& rows, const ResultsFile& file,
               ReduceSummary& summary, const std::function<void(const std::string&)>& print) {
  constexpr double kNone = std::numeric_limits<double>::infinity();
  double ours = kNone, peer = kNone;
  std::string who;
  for (const Row& row : rows) {
    // Rows that were kept count with the time that the file has.
    const double ms = row.ms > 0              ? row.ms
                      : file.has(key_of(row)) ? file.milliseconds(key_of(row))
                                              : kNone;
    if (row.is_void) return;
    if (row.impl == "chainfold" && (row.plan_kind == "chosen" || row.plan_kind == "tuned")) {
      ours = std::min(ours, ms);
    } else if (row.plan_kind.empty() && ms < peer) {
      peer = ms;
      who = row.impl;
    }
  }
  if (ours == kNone || peer == kNone) return;
  if (peer >= ours) {
    print(fmt::format("  {:<24} {:.2f} times as fast as {}", name, peer / ours, who));
    return;
  }
  const std::string text = fmt::format("{}: {} is {:.2f} times as fast", name, who, ours / peer);
  print("  LOST " + text);
  summary.lost.push_back(text);
}

}  // namespace

ReduceSummary run_reduce(Machine& machine, const std::vector<NamedCase>& cases,
                         const ReduceOptions& options, ResultsFile& file,
                         const std::function<void(const std::string&)>& print) {
  const auto start = Clock::now();
  const auto spent = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };
  const auto time_is_left = [&] { return options.budget <= 0 || spent() < options.budget; };
  ReduceSummary summary;
  const auto wants_energy = [&](const std::string& name, const Way& way) {
    return options.energy && std::regex_search(name + ' ' + way.name(), *options.energy);
  };

  struct Task {
    const NamedCase* named;
    std::vector<Way> all, wanted;
  };
  std::vector<Task> tasks;
  for (const NamedCase& named : cases) {
    if (!std::regex_search(named.name, options.only)) continue;
    Task task{&named, {}, {}};
    for (const Way& way : named.ways.empty() ? machine.ways(named.test) : named.ways) {
      if (!std::regex_search(way.name(), options.impl)) continue;
      task.all.push_back(way);
      const std::string key = key_of(identity(named, way));
      if (file.has(key) && (file.has_energy(key) || !wants_energy(named.name, way))) {
        ++summary.kept;
      } else {
        task.wanted.push_back(way);
      }
    }
    if (!task.wanted.empty()) tasks.push_back(std::move(task));
  }

  for (std::size_t t = 0; t < tasks.size(); ++t) {
    if (!time_is_left()) {
      summary.left = tasks.size() - t;
      break;
    }
    const NamedCase& named = *tasks[t].named;
    const std::string& name = named.name;
    const Case& test = named.test;
    const std::string left =
        t == 0 ? ""
               : fmt::format(", about {:.0f} s left", spent() / static_cast<double>(t) *
                                                          static_cast<double>(tasks.size() - t));
    print(fmt::format("[{}/{}] {}, n = {}{}", t + 1, tasks.size(), name, size_text(test.elements),
                      left));
    std::unique_ptr<Contest> contest;
    std::vector<Entrant> entrants;
    try {
      contest = machine.prepare(test, tasks[t].wanted);
      entrants = contest->entrants();
    } catch (const std::exception& error) {  // no memory for this case, say
      for (const Way& way : tasks[t].wanted)
        entrants.push_back({.way = way, .plan = way.strategy, .missing = error.what()});
    }
    std::vector<Row> rows;
    for (int attempt = 0; attempt < 2; ++attempt) {
      const Ceilings before = machine.ceilings(test);
      const std::vector<Timing> timings = contest != nullptr
                                              ? contest->time(options.seconds)
                                              : std::vector<Timing>(entrants.size(), Timing{1, 0});
      const Ceilings after = machine.ceilings(test);
      file.set_after(after);
      const bool moved = apart(before, after, options.void_above);
      rows.clear();
      const auto among = contest != nullptr ? contest->ceilings() : std::nullopt;
      for (std::size_t i = 0; i < entrants.size(); ++i) {
        rows.push_back(
            row_of(named, entrants[i], timings[i], among.value_or(between(before, after))));
        rows.back().is_void = moved && entrants[i].missing.empty();
      }
      if (!moved) break;
      const bool again = attempt == 0 && time_is_left();
      print(fmt::format("  void: read {:.1f} then {:.1f}, copy {:.1f} then {:.1f} GB/s{}",
                        before.read_gbps, after.read_gbps, before.copy_gbps, after.copy_gbps,
                        again ? "; measured again" : ""));
      if (!again) break;
    }
    for (std::size_t i = 0; i < entrants.size(); ++i) {
      if (entrants[i].wrong) summary.wrong.push_back(name + ": " + entrants[i].missing);
      if (entrants[i].missing.empty() && wants_energy(name, entrants[i].way)) {
        if (const std::optional<Energy> energy = contest->energy(i)) {
          rows[i].pj_per_element = energy->pj;
          rows[i].ceilings_pj_per_element = energy->ceilings_pj;
        }
      }
      summary.voided += rows[i].is_void ? 1 : 0;
      file.put(rows[i]);
      print(line_of(rows[i], name));
    }
    summary.rows += rows.size();
    ++summary.cases;
    for (const Way& way : tasks[t].all) {  // kept rows compete as well
      const std::string key = key_of(identity(named, way));
      const auto same = [&](const Row& row) { return key_of(row) == key; };
      if (std::any_of(rows.begin(), rows.end(), same)) continue;
      rows.push_back(identity(named, way));
      rows.back().ms = 0;
    }
    note_loss(name, rows, file, summary, print);
    file.save();
  }
  file.save();
  return summary;
}

void ReduceSummary::add(const ReduceSummary& other) {
  cases += other.cases;
  rows += other.rows;
  kept += other.kept;
  voided += other.voided;
  left += other.left;
  lost.insert(lost.end(), other.lost.begin(), other.lost.end());
  wrong.insert(wrong.end(), other.wrong.begin(), other.wrong.end());
}

std::string text_of(const ReduceSummary& summary) {
  std::string text = fmt::format("{} cases, {} rows measured, {} were in the file already\n",
                                 summary.cases, summary.rows, summary.kept);
  if (summary.voided > 0)
    text += fmt::format("{} rows are void: the ceilings moved\n", summary.voided);
  if (summary.left > 0)
    text += fmt::format("{} cases are left: time is up; run the same again\n", summary.left);
  for (const std::string& line : summary.wrong) text += "WRONG " + line + '\n';
  for (const std::string& line : summary.lost) text += "LOST " + line + '\n';
  return text;
}

}  // namespace chainfold::bench
