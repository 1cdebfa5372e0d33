# docker build -t coopt . && docker run --rm -v "$PWD:/work" coopt solve instances/tiny-64.toml
FROM python:3.13-slim
COPY pyproject.toml README.md CHANGELOG.md LICENSE /src/
COPY coopt /src/coopt
COPY formulations /src/formulations
RUN pip install --no-cache-dir "/src[all]" && rm -r /src && useradd --create-home planner
USER planner
WORKDIR /work
ENTRYPOINT ["coopt"]
CMD ["--help"]
