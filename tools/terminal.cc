#include "tools/terminal.h"

#include <cstdlib>
#include <string_view>

#include <sys/ioctl.h>
#include <unistd.h>

#include "tools/number_options.h"

namespace rehearse {
namespace {

// The variable's value, which is empty where it is not set.
std::string_view Variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? std::string_view(value) : std::string_view();
}

bool IsSet(const char* name) { return !Variable(name).empty(); }

// Whether it is a person's terminal that can do more than print letters. What mpirun and srun give
// their ranks looks like a terminal but is read by a program.
bool IsCapableTerminal(int stream) {
  if (isatty(stream) != 1 || IsSet("OMPI_COMM_WORLD_RANK") || IsSet("SLURM_PROCID")) return false;
  return std::getenv("TERM") != nullptr && Variable("TERM") != "dumb";
}

// Whether a launcher's variables say that this is not the first rank.
bool IsLaterRank() {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID", "RANK"}) {
    if (IsSet(name)) return WholeNumberIn(Variable(name)).value_or(0) > 0;
  }
  return false;
}

}  // namespace

bool ColorsWanted() { return IsCapableTerminal(STDOUT_FILENO) && !IsSet("NO_COLOR"); }

unsigned TerminalColumns(int stream, unsigned otherwise) {
  constexpr unsigned kMost = 10'000;
  winsize size{};
  if (ioctl(stream, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const auto said = WholeNumberIn(Variable("COLUMNS"));
  return said && *said > 0 && *said <= kMost ? static_cast<unsigned>(*said) : otherwise;
}

ProgressView ProgressWanted() {
  constexpr unsigned kUsual = 80;
  ProgressView view;
  view.columns = [] { return TerminalColumns(STDERR_FILENO, kUsual); };
  view.place = IsLaterRank()                      ? ProgressPlace::kNowhere
               : IsCapableTerminal(STDERR_FILENO) ? ProgressPlace::kInPlace
                                                  : ProgressPlace::kLines;
  return view;
}

}  // namespace rehearse
