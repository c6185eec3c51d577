// The meaning of attention over a list, one (token, head) at a time.

#include <algorithm>

#include "ops/attention/attention.h"

namespace samebits {
namespace {

struct Partial {
  AttentionState state;
  std::vector<float> o;
};

void Merge(Partial* into, const Partial& from) {
  const int m = std::max(into->state.m, from.state.m);
  const float a = AttentionRescale(into->state.m, m), b = AttentionRescale(from.state.m, m);
  into->state = {m, AttentionMergeValue(into->state.l, a, from.state.l, b)};
  for (size_t v = 0; v < into->o.size(); ++v) into->o[v] = AttentionMergeValue(into->o[v], a, from.o[v], b);
}

struct Row {
  const AttentionArgs& args;
  int64_t token, head;
  const PagedRows& keys() const { return args.keys_per_token ? args.keys_per_token[token] : args.keys; }
  const PagedRows& values() const { return args.values_per_token ? args.values_per_token[token] : args.values; }
  float Key(int64_t s, int64_t i) const {
    return keys().dtype == DType::kBF16 ? ToF32(keys().Row<BF16>(s)[i]) : keys().Row<float>(s)[i];
  }
  float Value(int64_t s, int64_t i) const {
    return values().dtype == DType::kBF16 ? ToF32(values().Row<BF16>(s)[i]) : values().Row<float>(s)[i];
  }
  Partial Empty() const { return {{}, std::vector<float>(static_cast<size_t>(args.value_dim), 0.0f)}; }

  float Score(int64_t s) const {
    const float dot = GemmPlanSum(
        args.dim, [&](float acc, int64_t i) { return Fma(MatAt(args.q, token, head * args.dim + i), Key(s, i), acc); });
    return AttentionScore(dot, AttentionScoreFactor(args.scale));
  }

  Partial Block(const int32_t* list, int64_t count) const {
    std::vector<float> n(static_cast<size_t>(count)), g(n);
    Partial p = Empty();
    float most = static_cast<float>(kAttentionEmpty);
    for (int64_t j = 0; j < count; ++j) {
      const float t = Score(list[j]);
      n[static_cast<size_t>(j)] = RoundToInt(t);
      g[static_cast<size_t>(j)] = Exp2Fraction(Sub(t, n[static_cast<size_t>(j)]));
      most = std::max(most, n[static_cast<size_t>(j)]);
    }
    p.state.m = static_cast<int>(most);
    for (int64_t j = 0; j < count; ++j) {
      const float weight = Mul(g[static_cast<size_t>(j)], AttentionRescale(n[static_cast<size_t>(j)] - most));
      const float w = values().dtype == DType::kBF16 ? ToF32(RoundToBF16(weight)) : weight;
      p.state.l = Add(p.state.l, weight);
      for (int64_t v = 0; v < args.value_dim; ++v)
        p.o[static_cast<size_t>(v)] = Fma(w, Value(list[j], v), p.o[static_cast<size_t>(v)]);
    }
    return p;
  }

  Partial Sum(const int32_t* list, int64_t count, const AttentionRule& rule) const {
    Partial total = Empty();
    int64_t at = 0, first = rule.block_offset % rule.block;
    while (at < count) {
      Partial segment = Empty();
      for (int b = 0; b < rule.segment_blocks && at < count; ++b, first = 0) {
        const int64_t size = std::min<int64_t>(first > 0 ? first : rule.block, count - at);
        Merge(&segment, Block(list + at, size));
        at += size;
      }
      Merge(&total, segment);
    }
    return total;
  }

  // What flash kernels do: weights relative to the real running maximum, so that every rescale rounds.
  float Online(const int32_t* list, int64_t count, const AttentionRule& rule, std::vector<float>* out) const {
    const auto power = [](float t) {
      const float n = RoundToInt(t < -126.0f ? -126.0f : t);
      return t < -126.0f ? 0.0f : Mul(Exp2Fraction(Sub(t, n)), AttentionRescale(n));
    };
    float most = -0x1p21f, l = 0.0f;
    std::fill(out->begin(), out->end(), 0.0f);
    for (int64_t at = 0; at < count; at += rule.block) {
      const int64_t size = std::min<int64_t>(rule.block, count - at);
      std::vector<float> t(static_cast<size_t>(size));
      float next = most;
      for (int64_t j = 0; j < size; ++j) {
        t[static_cast<size_t>(j)] = Score(list[at + j]);
        next = std::max(next, t[static_cast<size_t>(j)]);
      }
      const float rescale = power(Sub(most, next));
      most = next;
      l = Mul(l, rescale);
      for (float& o : *out) o = Mul(o, rescale);
      for (int64_t j = 0; j < size; ++j) {
        const float weight = power(Sub(t[static_cast<size_t>(j)], most));
        const float w = values().dtype == DType::kBF16 ? ToF32(RoundToBF16(weight)) : weight;
        l = Add(l, weight);
        for (size_t v = 0; v < out->size(); ++v)
          (*out)[v] = Fma(w, Value(list[at + j], static_cast<int64_t>(v)), (*out)[v]);
      }
    }
    for (float& o : *out) o = l > 0.0f ? Div(o, l) : 0.0f;
    return l > 0.0f ? Fma(most, kLn2Hi, Fma(most, kLn2Lo, Log(l))) : FromBits(0xff800000u);
  }

  float Finish(const Partial& p, std::vector<float>* out) const {
    for (size_t v = 0; v < p.o.size(); ++v) (*out)[v] = p.state.l > 0.0f ? Div(p.o[v], p.state.l) : 0.0f;
    return AttentionLse(p.state.m, p.state.l);
  }
};

}  // namespace

void AttentionRef(const AttentionArgs& args, const AttentionRule& rule) {
  for (int64_t t = 0; t < args.q.rows; ++t) {
    const std::vector<int32_t> list = AttentionList(args, t, rule.canonical_list);
    const int64_t count = static_cast<int64_t>(list.size());
    for (int64_t h = 0; h < args.heads; ++h) {
      const Row row{args, t, h};
      std::vector<float> out(static_cast<size_t>(args.value_dim)), parts, lses;
      for (int64_t s = 0; s < rule.splits; ++s) {
        const int64_t begin = count * s / rule.splits, end = count * (s + 1) / rule.splits;
        lses.push_back(rule.online ? row.Online(list.data() + begin, end - begin, rule, &out)
                                   : row.Finish(row.Sum(list.data() + begin, end - begin, rule), &out));
        parts.insert(parts.end(), out.begin(), out.end());
      }
      float lse = lses[0];
      if (rule.splits > 1) MergeStates({rule.splits, args.value_dim, parts.data(), lses.data(), out.data(), &lse});
      for (int64_t v = 0; v < args.value_dim; ++v)
        MatPut(args.out, t, h * args.value_dim + v, out[static_cast<size_t>(v)]);
      if (args.lse) args.lse[t * args.heads + h] = lse;
    }
  }
}

}  // namespace samebits
