// chainfold-cache: looks at, checks and empties the cache of compiled kernels and tuning records.
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string>
#include <vector>

#include "chainfold/runtime/cache/disk_cache.hpp"

namespace {

using chainfold::CacheStatistics;
using chainfold::runtime::CacheSettings;
using chainfold::runtime::DiskCache;
using chainfold::runtime::ListedEntry;

std::string when(std::int64_t seconds) {
  return fmt::format("{:%Y-%m-%d %H:%M}", fmt::localtime(static_cast<std::time_t>(seconds)));
}

/// The description is text from a file: what a terminal would obey is shown as a question mark.
std::string printable(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return text;
}

void print_entries(const std::vector<ListedEntry>& entries) {
  for (const ListedEntry& entry : entries) {
    if (entry.problem.empty()) {
      fmt::print("{}  {}  {:>9} bytes  last used {}  version {}  {}\n", entry.key.hex(), entry.kind,
                 entry.bytes, when(entry.used), printable(entry.version),
                 printable(entry.description));
    } else {
      fmt::print("{}  {:>9} bytes  last used {}  DAMAGED: {}\n", entry.file, entry.bytes,
                 when(entry.used), entry.problem);
    }
  }
}

int list(DiskCache& cache) {
  print_entries(cache.list());
  const CacheStatistics stats = cache.stats();
  fmt::print("{}: {:.1f} of {:.0f} MiB\n", stats.directory,
             static_cast<double>(stats.bytes) / (1 << 20),
             static_cast<double>(stats.byte_limit) / (1 << 20));
  return 0;
}

int verify(DiskCache& cache, bool remove) {
  const std::size_t all = cache.list().size();
  const std::vector<ListedEntry> bad = cache.verify(remove);
  print_entries(bad);
  fmt::print("{} entries, {} damaged{}\n", all, bad.size(),
             remove && !bad.empty() ? " and removed" : "");
  return bad.empty() ? 0 : 1;
}

int run(int argc, char** argv) {
  CLI::App app(
      "Looks at, checks and empties Chainfold's cache of compiled kernels and tuning records.");
  std::string folder;
  bool remove = false;
  app.add_option(
         "--dir", folder,
         "The cache's folder (default: CHAINFOLD_CACHE_DIR, else $XDG_CACHE_HOME/chainfold, "
         "else $HOME/.cache/chainfold)")
      ->check([](const std::string& name) {  // a script's unset variable must not mean the default
        return name.empty() ? "it is empty; name a folder, or leave --dir out" : std::string();
      });
  app.require_subcommand(1);
  app.fallthrough();
  const CLI::App* listing =
      app.add_subcommand("list", "Every entry, the least recently used first");
  CLI::App* verifying =
      app.add_subcommand("verify", "Reads and checks every entry; status 1 if one is damaged");
  verifying->add_flag("--remove", remove, "Remove what is damaged");
  const CLI::App* clearing = app.add_subcommand("clear", "Removes every entry");
  CLI11_PARSE(app, argc, argv);

  CacheSettings settings = CacheSettings::of_process();
  settings.off = false;  // off for kernels is no reason to keep their files
  if (!folder.empty()) settings = {.folder = folder, .warning = {}};
  if (settings.folder.empty()) {
    fmt::print(stderr, "chainfold-cache: no folder. {}; or name it with --dir\n", settings.warning);
    return 2;
  }
  DiskCache cache(settings);
  int status = 0;
  if (listing->parsed()) status = list(cache);
  if (verifying->parsed()) status = verify(cache, remove);
  if (clearing->parsed()) fmt::print("removed {} entries\n", cache.clear());
  if (const std::string warning = cache.stats().warning; !warning.empty()) {
    fmt::print(stderr, "chainfold-cache: {}\n", warning);
    return 2;
  }
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    fmt::print(stderr, "chainfold-cache: {}\n", error.what());
    return 2;
  }
}
