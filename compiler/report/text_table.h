// Numbers and columns as text, for the reports of this folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace mpc::compiler {

/// "246,824".
std::string FormatCount(std::int64_t number);

/// "512 bytes", "241.0 KiB", "1.5 MiB".
std::string FormatBytes(std::int64_t bytes);

/// "1 tensor", "2 tensors".
std::string FormatCounted(std::int64_t number, const char *singular);

/// "1.2 GFLOP".
std::string FormatFlops(double flops);

/// Left-aligned columns, two spaces apart and indented by two.
class TextTable {
public:
  explicit TextTable(std::vector<std::string> header) { add(std::move(header)); }
  void add(std::vector<std::string> row);
  std::string print() const;

private:
  std::vector<std::vector<std::string>> tableRows;
  std::vector<std::size_t> columnWidths;
};

} // namespace mpc::compiler
