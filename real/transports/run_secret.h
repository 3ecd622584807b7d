// What all processes of one run know and nobody else: who connects has to say it before anybody
// listens to it.
//
// It is in the environment, REHEARSE_SECRET, or in the file that REHEARSE_SECRET_FILE names, which
// only its owner may read. Ranks of one machine need neither: rank 0 leaves one in shared memory
// of mode 600 until all have come. A rank says one half of it and rank 0 the other, so that neither
// can answer with what it has just heard. Halves go over the wire as they are: a secret is for one
// run, on a network that does not listen.
#pragma once

#include <array>
#include <optional>
#include <string>

namespace rehearse {

inline constexpr size_t kShortestSecret = 16;  // characters
inline constexpr size_t kLongestSecret = 128;

using SecretHalf = std::array<char, kLongestSecret / 2>;  // zeros at its end

struct RunSecret {
  SecretHalf of_ranks{};
  SecretHalf of_rank_0{};
};

// Takes as long wherever they differ.
bool IsSame(const SecretHalf& a, const SecretHalf& b);

// Throws Error, which begins with `source`, for a text of another length.
RunSecret SplitSecret(const std::string& text, const std::string& source);

// Nothing where neither variable is set. Throws Error for secrets of another length, and for a file
// that is none, is another's, or that others may read.
std::optional<RunSecret> SecretFromEnvironment();

// A secret that lies in this machine's shared memory as long as the object lives.
class SharedSecret {
 public:
  // `run` is a name that no other run of this user has, as a file may have it. What an earlier one
  // has left under it is replaced.
  explicit SharedSecret(const std::string& run);
  ~SharedSecret();
  SharedSecret(const SharedSecret&) = delete;
  SharedSecret& operator=(const SharedSecret&) = delete;

  const RunSecret& secret() const { return secret_; }

  // What this user's rank 0 has left there; nothing as long as there is none.
  static std::optional<RunSecret> Find(const std::string& run);

 private:
  std::string name_;
  RunSecret secret_;
};

}  // namespace rehearse
