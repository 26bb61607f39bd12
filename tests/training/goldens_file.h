// Reads the numbers that a reference program left for a test.
#pragma once

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace mpc::testing {

/// "scenario name numbers..." or "case name", then lines of numbers.
struct GoldenCase {
  std::string name;
  std::vector<double> options;
  std::vector<std::vector<double>> lines;
};

inline std::vector<double> Numbers(std::istringstream& line) {
  std::vector<double> numbers;
  // Streams do not read "inf" and "nan"; strtod does.
  for (std::string word; line >> word;) numbers.push_back(std::strtod(word.c_str(), nullptr));
  return numbers;
}

/// The cases of a file below MPC_GOLDENS, which begin with the word `head`; lines with # are comments.
inline std::vector<GoldenCase> ReadGoldens(const std::string& path, const std::string& head) {
  std::vector<GoldenCase> cases;
  std::ifstream file(path);
  for (std::string text; std::getline(file, text);) {
    if (text.empty() || text[0] == '#') continue;
    std::istringstream line(text);
    if (text.rfind(head + " ", 0) != 0) {
      if (!cases.empty()) cases.back().lines.push_back(Numbers(line));
      continue;
    }
    GoldenCase fresh;
    std::string word;
    line >> word >> fresh.name;
    fresh.options = Numbers(line);
    cases.push_back(std::move(fresh));
  }
  return cases;
}

}  // namespace mpc::testing
