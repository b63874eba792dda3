#include "columns.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <utility>

MappedFile::MappedFile(const std::filesystem::path& path) {
  const auto fail = [&](const char* what) {
    throw std::runtime_error(
        fmt::format("{} could not be {}: {}", path.string(), what, std::strerror(errno)));
  };
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) fail("opened");
  struct stat status{};
  if (::fstat(file, &status) != 0) {
    ::close(file);
    fail("read");
  }
  bytes_ = static_cast<std::size_t>(status.st_size);
  if (bytes_ > 0) {
    // Populated at once, so that the first timed run does not pay for page faults.
    data_ = ::mmap(nullptr, bytes_, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
  }
  ::close(file);
  if (data_ == MAP_FAILED) {
    data_ = nullptr;
    fail("mapped");
  }
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

namespace {

nlohmann::json read_manifest(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "manifest.json";
  std::ifstream stream(path);
  if (!stream) {
    throw std::runtime_error(
        fmt::format("{} is missing: make the data with examples/tpch/make_data.py {}",
                    path.string(), folder.string()));
  }
  try {
    return nlohmann::json::parse(stream);
  } catch (const nlohmann::json::exception& error) {
    throw std::runtime_error(fmt::format("{} is not JSON: {}", path.string(), error.what()));
  }
}

/// Maps one column after checking that the manifest gives it the type and scale the query needs.
template <class T>
MappedFile map_column(const std::filesystem::path& folder, const nlohmann::json& manifest,
                      const char* name, const char* type, std::int64_t rows) {
  const nlohmann::json& column = manifest.at("columns").at(name);
  if (column.at("type") != type) {
    throw std::runtime_error(fmt::format("column {} holds {}, the query needs {}", name,
                                         column.at("type").dump(), type));
  }
  if (std::string_view(type) == "i64" && column.at("scale") != 100) {
    throw std::runtime_error(fmt::format(
        "column {} is scaled by {}, the query needs hundredths (scale 100): the constants would "
        "not fit the data",
        name, column.at("scale").dump()));
  }
  const std::filesystem::path path = folder / column.at("file").get<std::string>();
  MappedFile file(path);
  if (file.bytes() != static_cast<std::size_t>(rows) * sizeof(T)) {
    throw std::runtime_error(fmt::format(
        "{} has {} bytes, {} rows of {} need {}; delete the folder and make the data again",
        path.string(), file.bytes(), rows, type, static_cast<std::size_t>(rows) * sizeof(T)));
  }
  return file;
}

}  // namespace

Columns::Columns(const std::filesystem::path& folder) {
  const nlohmann::json manifest = read_manifest(folder);
  try {
    if (manifest.at("format") != 1) {
      throw std::runtime_error(fmt::format("{}/manifest.json has format {}, this program reads 1",
                                           folder.string(), manifest.at("format").dump()));
    }
    rows = manifest.at("rows").get<std::int64_t>();
    scale_factor = manifest.at("scale_factor").get<double>();
    if (rows < 0) throw std::runtime_error("the manifest gives a negative number of rows");
    ship_file = map_column<std::int32_t>(folder, manifest, "l_shipdate", "i32", rows);
    discount_file = map_column<std::int64_t>(folder, manifest, "l_discount", "i64", rows);
    quantity_file = map_column<std::int64_t>(folder, manifest, "l_quantity", "i64", rows);
    price_file = map_column<std::int64_t>(folder, manifest, "l_extendedprice", "i64", rows);
  } catch (const nlohmann::json::exception& error) {
    throw std::runtime_error(fmt::format("{}/manifest.json lacks what the query needs: {}",
                                         folder.string(), error.what()));
  }
  ship = ship_file.values<std::int32_t>();
  discount = discount_file.values<std::int64_t>();
  quantity = quantity_file.values<std::int64_t>();
  price = price_file.values<std::int64_t>();
}
