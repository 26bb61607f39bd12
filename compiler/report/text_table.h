// Numbers and columns as text, for the reports of this folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace mpc::compiler {

/// "246,824", "-1,000".
std::string FormatCount(std::int64_t number);

/// \p bytes is not negative: "512 bytes", "241.0 KiB", "1.5 MiB", up to TiB.
std::string FormatBytes(std::int64_t bytes);

/// "1 tensor", "2,000 tensors".
std::string FormatCounted(std::int64_t number, const char *singular);

/// "1.2 GFLOP", from kFLOP to PFLOP: "0.5 kFLOP" for 500.
std::string FormatFlops(double flops);

/// Left-aligned columns, two spaces apart and indented by two. Widths are counted in bytes.
class TextTable {
public:
  explicit TextTable(std::vector<std::string> header) { add(std::move(header)); }
  /// Adds a row, which may have fewer or more cells than the others.
  void add(std::vector<std::string> row);
  /// The header and the rows, a line each that ends in a line break and in no blank.
  std::string print() const;

private:
  std::vector<std::vector<std::string>> tableRows;
  std::vector<std::size_t> columnWidths;
};

} // namespace mpc::compiler
