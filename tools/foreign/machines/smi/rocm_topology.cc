#include "tools/foreign/machines/smi/rocm_topology.h"

#include <algorithm>
#include <cctype>
#include <map>

#include <fmt/format.h>

#include "sim/base/error.h"
#include "tools/foreign/machines/imported_cluster.h"

namespace rehearse {
namespace {

constexpr const char* kRocmExpected =
    "the output of nvidia-smi topo -m, rocm-smi --showtopo or amd-smi topology";
constexpr size_t kMostRocmGpus = 256;

struct RocmLine {
  int number = 0;
  std::string text;
  std::vector<std::string> words;
};

std::vector<RocmLine> RocmLines(std::string_view text) {
  std::vector<RocmLine> lines;
  int number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    RocmLine line = {++number, std::string(text.substr(0, end)), {}};
    text.remove_prefix(std::min(end + 1, text.size()));
    std::string word;
    for (const char c : line.text + " ") {
      const bool is_blank = c == ' ' || c == '\t' || c == '\r';
      if (!is_blank) word += c;
      if (is_blank && !word.empty()) line.words.push_back(std::exchange(word, ""));
    }
    if (!line.words.empty()) lines.push_back(std::move(line));
  }
  return lines;
}

// "GPU0" and "0000:0c:00.0".
bool IsRocmGpu(std::string_view word) {
  const auto all = [&](size_t from, auto&& is) {
    return from < word.size() &&
           std::all_of(word.begin() + static_cast<std::ptrdiff_t>(from), word.end(), is);
  };
  if (word.starts_with("GPU")) return all(3, [](char c) { return c >= '0' && c <= '9'; });
  return std::count(word.begin(), word.end(), ':') == 2 && all(0, [](char c) {
           return std::isxdigit(static_cast<unsigned char>(c)) != 0 || c == ':' || c == '.';
         });
}

class RocmReader {
 public:
  RocmReader(std::string_view text, const std::string& file)
      : file_(file), lines_(RocmLines(text)) {}

  RocmTopology Read() {
    bool has_types = false;
    for (size_t i = 0; i < lines_.size(); ++i) {
      const std::string title = Lower(lines_[i].text);
      if (title.find("link type") != std::string::npos) {
        ReadTable(i, &types_);
        has_types = true;
      } else if (title.find("hops") != std::string::npos && IsHeader(i + 1)) {
        ReadTable(i, &hops_);
      } else {
        ReadNuma(lines_[i]);
      }
    }
    if (!has_types) {
      throw Error(
          {file_, 0, ""},
          fmt::format("there is no table of link types between GPUs, expected {}", kRocmExpected));
    }
    for (size_t i = 0; i < topology_.gpus.size(); ++i) {
      RocmTopology::Gpu& gpu = topology_.gpus[i];
      const auto numa = numa_.find(gpu.name);
      if (numa != numa_.end()) gpu.numa = numa->second;
      for (size_t j = 0; j < topology_.gpus.size(); ++j) {
        // Where GPUs are more than one hop apart, others lie between them.
        const bool is_near = hops_.empty() || hops_[i][j] == "1" || hops_[i][j] == "N/A";
        gpu.has_xgmi.push_back(i != j && is_near && Lower(types_[i][j]).starts_with("xgmi"));
      }
    }
    return std::move(topology_);
  }

 private:
  using Cells = std::vector<std::vector<std::string>>;

  [[noreturn]] void Fail(int line, const std::string& message) const {
    throw Error({file_, line, ""}, message);
  }
  static std::string Lower(std::string text) {
    for (char& c : text)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    return text;
  }

  bool IsHeader(size_t at) const {
    return at < lines_.size() &&
           std::all_of(lines_[at].words.begin(), lines_[at].words.end(), IsRocmGpu);
  }

  // The header is right below the title, and then the rows.
  void ReadTable(size_t title, Cells* cells) {
    const int line = lines_[title].number;
    if (!cells->empty()) Fail(line, "there is a second table of this kind");
    if (title + 1 == lines_.size()) Fail(line, "the table ends after its title");
    const std::vector<std::string>& header = lines_[title + 1].words;
    if (!IsHeader(title + 1))
      Fail(lines_[title + 1].number, "expected a header such as \"GPU0 GPU1\" below the title");
    if (header.size() > kMostRocmGpus)
      Fail(lines_[title + 1].number, fmt::format("there are more than {} GPUs", kMostRocmGpus));
    if (topology_.gpus.empty()) {
      for (const std::string& name : header) topology_.gpus.push_back({name, 0, "", {}});
    }
    if (topology_.gpus.size() != header.size())
      Fail(lines_[title + 1].number, fmt::format("this table is of {} GPUs, another of {}",
                                                 header.size(), topology_.gpus.size()));
    for (size_t i = 0; i < header.size(); ++i) {
      const size_t at = title + 2 + i;
      if (at >= lines_.size())
        Fail(lines_.back().number,
             fmt::format("the table ends before the row of {}", Quoted(header[i])));
      const RocmLine& row = lines_[at];
      if (row.words[0] != topology_.gpus[i].name || row.words.size() != header.size() + 1)
        Fail(row.number, fmt::format("expected the row of {} with {} cells",
                                     Quoted(topology_.gpus[i].name), header.size()));
      topology_.gpus[i].line = row.number;
      cells->emplace_back(row.words.begin() + 1, row.words.end());
    }
  }

  // "GPU[0] : (Topology) Numa Node: 0"
  void ReadNuma(const RocmLine& line) {
    const std::string lower = Lower(line.text);
    const size_t key = lower.find("numa node:");
    const size_t begin = line.text.find("GPU[");
    const size_t end = line.text.find(']');
    if (key == std::string::npos || begin == std::string::npos || end == std::string::npos ||
        end < begin)
      return;
    const std::string number = line.text.substr(begin + 4, end - begin - 4);
    numa_["GPU" + number] = line.words.back();
  }

  const std::string file_;
  const std::vector<RocmLine> lines_;
  RocmTopology topology_;
  Cells types_;
  Cells hops_;
  std::map<std::string, std::string> numa_;
};

}  // namespace

bool IsRocmTopology(std::string_view text) {
  for (const std::string_view mark :
       {"ROCm System Management", "Link Type between", "LINK TYPE TABLE", "ACCESS TABLE"})
    if (text.find(mark) != std::string_view::npos) return true;
  return false;
}

RocmTopology ReadRocmTopology(std::string_view text, const std::string& file) {
  return RocmReader(text, file).Read();
}

}  // namespace rehearse
